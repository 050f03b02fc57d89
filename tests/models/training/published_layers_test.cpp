#include <gmock/gmock.h>

#include <cmath>

#include "models/training/stage_costs.hpp"
#include "tests/support/training_fixtures.hpp"

// Layers of published runs against the decomposition of an independent implementation of the same
// laws, whose steps meet the measured ones (docs/models/kernels.md, "Checked against").
namespace trainyard::models {
namespace {

using namespace fixtures;

// The constants of that implementation, before rounding.
GpuSpec unrounded(GpuSpec gpu) {
  GpuCalibration& c = gpu.calibration;
  c.small_head = 0.95;
  c.unfused_products = 0.605;
  c.unfused_bytes = 1.13;
  c.logit_bytes = 22.5;
  return gpu;
}
SoftwareSpec stack(double elementwise = 1.07) {
  SoftwareSpec software;
  software.elementwise = elementwise;
  software.cast_bytes = 0.93;
  software.context_overhead = 0.024;
  software.tensor_overlap_backward = 0;
  return software;
}
SoftwareSpec nemo() {
  SoftwareSpec software = stack();
  software.tensor_overlap_forward = software.tensor_overlap_backward = 0.615;
  software.tensor_regather = 0;
  software.gather_in_fp8 = true;
  return software;
}
SoftwareSpec megatron_2022() {
  SoftwareSpec software = stack();
  software.flash_attention = false;
  software.tensor_overlap_backward = 0.73;
  return software;
}
SoftwareSpec llm_foundry(double attention_rate) {
  SoftwareSpec software = stack(1.87);
  software.attention_rate = attention_rate;
  return software;
}

GpuSpec a100_40gb() {
  GpuSpec gpu = a100();
  gpu.memory_rate = BytesPerSecond(1.555e12);
  return gpu;
}
GpuSpec h100_500w() {  // HBM2e, power limit 500 W
  GpuSpec gpu = h100();
  gpu.memory_rate = BytesPerSecond(2.4e12);
  gpu.calibration.gemm_16bit = 0.613;
  gpu.calibration.gemm_fp8 = 0.718 * 0.613 / 0.750;
  gpu.calibration.attention = 0.253;
  return gpu;
}

struct Layout {
  int tensor = 1;
  int context = 1;
  int sequence = 2048;
  int micro_batch = 1;
  Precision precision = Precision::bf16;
  Recompute recompute = Recompute::none;
  bool sequence_parallel = true;
  int expert = 1;
};

struct Row {
  const char* name;
  GpuSpec gpu;
  TransformerSpec model;
  SoftwareSpec software;
  Layout layout;
  double forward_ms, backward_ms, tensor_ms;
};
void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

JobSpec job_of(const Row& row) {
  const Layout& l = row.layout;
  JobSpec job;
  job.model = row.model;
  job.gpus = l.tensor * l.context * l.expert;
  job.global_batch = l.micro_batch * l.expert;
  job.sequence = l.sequence;
  job.software = row.software;
  ParallelSpec& p = job.parallel;
  p.tensor = l.tensor;
  p.context = l.context;
  p.expert = l.expert;
  p.micro_batch = l.micro_batch;
  p.sequence_parallel = l.sequence_parallel;
  p.precision = l.precision;
  p.recompute = l.recompute;
  return job;
}

/// Closed forms inside the scale-up domain (docs/models/collectives.md).
CommCosts in_domain(const GpuSpec& gpu, int tensor) {
  const bool a100 = gpu.sms == 108;
  const double rate = gpu.scale_up_rate.value() * gpu.calibration.scale_up_efficiency;
  const double step = a100 ? 3e-6 : 2e-6, root = a100 ? 2.4e-8 : 1e-8, n = tensor;
  const auto pass = [=](double times) {
    return [=](double bytes) {
      return 10e-6 + times * (n - 1) * step / 2 + root * std::sqrt(bytes) +
             times * (n - 1) / n * bytes / rate;
    };
  };
  CommCosts comm = CommCosts::free();
  comm.tensor = {pass(1), pass(1), pass(2)};
  return comm;
}

TransformerSpec mpt(int layers, int hidden, int heads) {  // ALiBi: no positions
  TransformerSpec model = gpt(layers, hidden, heads, 50368);
  model.positions = Positions::none;
  return model;
}

class PublishedLayer : public testing::TestWithParam<Row> {};

TEST_P(PublishedLayer, IsMetWithinTwoPercent) {
  const Row& row = GetParam();
  const JobSpec job = job_of(row);
  const Plan plan = make_plan(job);
  const PassPair cost =
      layer_costs(row.gpu, plan, plan.kinds[0], job.software, in_domain(row.gpu, plan.tensor));
  const double tensor = cost.forward.exposed_tp_s + cost.backward.exposed_tp_s;
  EXPECT_NEAR(cost.forward.total_s() * 1e3 / row.forward_ms, 1, 0.02);
  EXPECT_NEAR(cost.backward.total_s() * 1e3 / row.backward_ms, 1, 0.02);
  if (row.tensor_ms == 0)
    EXPECT_EQ(tensor, 0);
  else
    EXPECT_NEAR(tensor * 1e3 / row.tensor_ms, 1, 0.02);
}

INSTANTIATE_TEST_SUITE_P(
    Dense, PublishedLayer,
    testing::Values(
        Row{"gpt_175b_selective_T0048",
            unrounded(a100()),
            gpt(96, 12288, 96),
            megatron_2022(),
            {.tensor = 8, .precision = Precision::fp16, .recompute = Recompute::selective},
            5.93,
            9.82,
            2.15},
        Row{"gpt_22b_full_T0045",
            unrounded(a100()),
            gpt(48, 6144, 64),
            megatron_2022(),
            {.tensor = 8,
             .micro_batch = 4,
             .recompute = Recompute::full,
             .sequence_parallel = false},
            8.04,
            19.75,
            4.65},
        Row{"gpt_530b_2021_T0009",
            unrounded(a100()),
            gpt(105, 20480, 128),
            [] {
              SoftwareSpec software = megatron_2022();
              software.tensor_overlap_backward = 0;
              return software;
            }(),
            {.tensor = 8, .recompute = Recompute::full, .sequence_parallel = false},
            13.28,
            38.01,
            5.27},
        Row{"gpt_175b_zero3_T0023",
            unrounded(a100()),
            gpt(96, 12288, 96),
            megatron_2022(),
            {.recompute = Recompute::full},
            33.87,
            100.48,
            0},
        Row{"mpt_70b_h100_T0539",
            unrounded(h100()),
            mpt(80, 8192, 64),
            llm_foundry(0.507),
            {.micro_batch = 8, .recompute = Recompute::full},
            43.82,
            134.50,
            0},
        Row{"mpt_3b_a100_T0706",
            unrounded(a100_40gb()),
            mpt(32, 2560, 20),
            llm_foundry(0.732),
            {.micro_batch = 5},
            9.08,
            19.24,
            0},
        Row{"llama_8b_context_T0215",
            unrounded(h100()),
            llama3_8b(),
            nemo(),
            {.context = 2, .sequence = 8192},
            3.68,
            8.23,
            0},
        Row{"llama_70b_T0225",
            unrounded(h100()),
            llama3_70b(),
            nemo(),
            {.tensor = 4, .context = 2, .sequence = 8192},
            3.44,
            7.01,
            0.72},
        Row{"gpt_175b_fp8_T0164",
            unrounded(h100()),
            gpt(96, 12288, 96),
            nemo(),
            {.tensor = 4, .precision = Precision::fp8},
            1.97,
            4.06,
            0.47},
        Row{"llama_405b_T0240",
            unrounded(h100()),
            llama3_405b(),
            nemo(),
            {.tensor = 8, .context = 2, .sequence = 8192},
            5.89,
            11.66,
            1.40},
        Row{"llama_405b_fp8_T0187",
            unrounded(h100()),
            llama3_405b(),
            nemo(),
            {.tensor = 8, .context = 2, .sequence = 8192, .precision = Precision::fp8},
            3.71,
            7.42,
            1.10},
        Row{"llama_405b_gb200_T0196",
            unrounded(gb200()),
            llama3_405b(),
            nemo(),
            {.tensor = 4, .context = 2, .sequence = 8192, .precision = Precision::fp8},
            3.24,
            6.76,
            0.69},
        Row{"llama_405b_torchtitan_T0145",
            unrounded(h100_500w()),
            llama3_405b(),
            [] {
              SoftwareSpec software = stack();
              software.cast_bytes = 0.93 * 2.3;
              software.tensor_overlap_forward = software.tensor_overlap_backward = 0.43;
              return software;
            }(),
            {.tensor = 8,
             .sequence = 8192,
             .micro_batch = 4,
             .precision = Precision::fp8,
             .recompute = Recompute::full},
            38.93,
            115.27,
            21.71}),
    [](const auto& row) { return std::string(row.param.name); });

// Grok-1: 8 experts, 2 a token, 4 of them on a GPU, each over 4 tensor-parallel ranks (T0351).
TransformerSpec grok_1() {
  TransformerSpec model;
  model.layers = 2;
  model.hidden = 6144;
  model.heads = 48;
  model.kv_heads = 8;
  model.head_size = 128;
  model.ffn = 32768;
  model.gated = true;
  model.vocabulary = 131072;
  model.experts = ExpertsSpec{.count = 8, .per_token = 2};
  return model;
}

// That implementation counts the copies of tokens differently: all four tensor-parallel ranks send
// all of them between the two groups of experts, and two gathers and scatters of the tokens around
// the experts bring them together. Here a rank sends its own quarter, and the four ranks of an
// expert gather the copies, all exposed: slower by 5 % forward and 3 % backward; and only the
// gathers around attention are tensor-parallel traffic, half of it.
TEST(ExpertLayer, GrokIsMetWithinSixPercent) {
  SoftwareSpec software = nemo();
  software.expert_permute = 1.3;
  software.fused_permute = false;
  const Row row{"grok",
                unrounded(h100()),
                grok_1(),
                software,
                {.tensor = 4, .sequence = 4096, .expert = 2},
                5.63,
                11.08,
                0.58};
  const JobSpec job = job_of(row);
  const Plan plan = make_plan(job);
  CommCosts comm = in_domain(row.gpu, 4);
  // Half of the copies leave for the other group.
  comm.expert_exchange_s = [](const ExpertExchange& x) {
    return 11e-6 + 0.5 * x.tokens * x.per_token * x.token_bytes / 365e9;
  };
  const PassPair cost = layer_costs(row.gpu, plan, plan.kinds[0], job.software, comm);
  EXPECT_NEAR(cost.forward.total_s() * 1e3 / row.forward_ms, 1, 0.06);
  EXPECT_NEAR(cost.backward.total_s() * 1e3 / row.backward_ms, 1, 0.04);
  const double tensor_s = cost.forward.exposed_tp_s + cost.backward.exposed_tp_s;
  EXPECT_NEAR(2 * tensor_s * 1e3 / row.tensor_ms, 1, 0.02);
}

}  // namespace
}  // namespace trainyard::models
