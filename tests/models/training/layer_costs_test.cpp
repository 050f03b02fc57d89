#include <gmock/gmock.h>

#include "models/training/stage_costs.hpp"
#include "models/training/transformer.hpp"
#include "tests/support/cost_fixtures.hpp"

namespace trainyard::models {
namespace {

using namespace fixtures;

TEST(LayerCosts, IsTheSumOfItsKernels) {
  const JobSpec job = job_on(llama3_8b(), 1);
  const PassPair cost = layer(job);
  const double T = 8192, h = 4096, f = 14336;
  const AttentionShape attention{T, T, 32, 128};
  // qkv 32 + 2 . 8 heads of 128; gate and up in one product
  const std::vector<LinearShape> linears{{T, h, 6144}, {T, h, h}, {T, h, 2 * f}, {T, f, h}};
  const double memory = bytes_s(1.05 * T * (8 * h + 12 * h + 6 * f + 8 * 40 * 128));
  EXPECT_NEAR(
      cost.forward.total_s(),
      products_forward_s(linears) + flash_attention_forward_s(h100(), attention) + memory + 8 * tau,
      1e-12);
  EXPECT_NEAR(cost.backward.total_s(),
              products_backward_s(linears) + flash_attention_backward_s(h100(), attention) +
                  2 * memory + 16 * tau,
              1e-12);
  EXPECT_DOUBLE_EQ(cost.forward.useful_s,
                   layer_forward_flops(job.model, 8192) * T / h100().peak_16bit.value());
  EXPECT_NEAR(cost.backward.useful_s, 2 * cost.forward.useful_s, 1e-15);
  double weights = 0;
  for (const LinearShape& linear : linears)
    weights += linear_weight_gradient_s(h100(), Operands::bits16, linear);
  EXPECT_NEAR(cost.backward.weight_gradient_s, weights, 1e-12);
  EXPECT_EQ(cost.forward.exposed_s(), 0);
}

TEST(LayerCosts, ContextParallelRanksSeeTheWholeSequence) {
  // 4096 tokens a rank against 8192; 8 key/value heads of 128, keys and values, 2 bytes.
  JobSpec job = job_on(llama3_8b(), 1, 2);
  job.software.context_overhead = 0.1;
  const AttentionShape half{4096, 8192, 32, 128};
  const double forward = flash_attention_forward_s(h100(), half);
  const double backward = flash_attention_backward_s(h100(), half);
  const auto bytes_of_step = [](double expected, double takes) {
    CommCosts comm = CommCosts::free();
    comm.context_step_s = [=](double bytes) {
      return bytes == expected || bytes == 2 * expected ? takes : 1e9;
    };
    return comm;
  };
  // One step, behind half of the attention.
  const PassPair free = layer(job);
  const PassPair ring = layer(job, bytes_of_step(4096.0 * 8 * 2 * 128 * 2, 0.01));
  EXPECT_NEAR(ring.forward.exposed_cp_s, 0.01 - forward / 2, 1e-12);
  EXPECT_NEAR(ring.backward.exposed_cp_s, 0.01 - backward / 2, 1e-12);
  EXPECT_EQ(layer(job, bytes_of_step(4096.0 * 8 * 2 * 128 * 2, 1e-6)).forward.exposed_cp_s, 0);
  const PassPair off = without(&Mechanisms::context_traffic, job, counted());
  EXPECT_EQ(off.forward.exposed_cp_s, 0);
  EXPECT_NEAR(free.forward.total_s() - off.forward.total_s(), 0.1 * forward, 1e-12);
  EXPECT_NEAR(free.backward.total_s() - off.backward.total_s(), 0.1 * backward, 1e-12);
  // Gathered before: nothing hides it, and attention is in one piece.
  job.parallel.context_exchange = ContextExchange::all_gather;
  const PassPair gathered = layer(job, counted());
  EXPECT_DOUBLE_EQ(gathered.forward.exposed_cp_s, 8);
  EXPECT_DOUBLE_EQ(gathered.backward.exposed_cp_s, 8 + 16);
  EXPECT_NEAR(gathered.forward.compute_s(), off.forward.compute_s(), 1e-12);
}

TEST(LayerCosts, FewerKeyHeadsThanRanksAreHeldByEach) {
  // 8 key/value heads: one on each of 8 ranks, and one still on each of 16.
  JobSpec job = job_on(llama3_8b(), 16);
  const double T = 8192, h = 4096;
  const double f = 14336.0 / 16;
  const double memory = bytes_s(1.05 * T * (20 * h / 16 + 6 * f + 8 * (2 + 1) * 128));
  EXPECT_NEAR(
      layer(job).forward.total_s(),
      products_forward_s({{T, h, (2 + 2) * 128}, {T, 2 * 128, h}, {T, h, 2 * f}, {T, f, h}}) +
          flash_attention_forward_s(h100(), {T, T, 2, 128}) + memory + 8 * tau,
      1e-12);
}

TEST(LayerCosts, LatentAttentionCountsItsNarrowMatrices) {
  // Of DeepSeek-V3: queries 7168 -> 1536 -> 128 (128 + 64), keys and values 7168 -> 512 (+ 64) ->
  // 128 (128 + 128); the narrow ones whole on both ranks.
  TransformerSpec model = gpt(1, 7168, 128);
  model.latent_attention = LatentAttentionSpec{
      .query_rank = 1536, .kv_rank = 512, .head_size = 128, .rotary_size = 64, .value_size = 128};
  model.ffn = 18432;
  model.gated = true;
  JobSpec job = job_on(model, 2);
  job.sequence = 4096;
  const double T = 4096, h = 7168;
  const double products = products_forward_s({{T, h, 2112},
                                              {T, 1536, 64 * 192},
                                              {T, 512, 64 * 256},
                                              {T, 64 * 128, h},
                                              {T, h, 18432},
                                              {T, 9216, h}});
  const double memory =
      bytes_s(1.05 * T * (20 * h / 2 + 6 * 9216 + 64 * (4 * 64 + 2 * 256 + 2 * 320)));
  EXPECT_NEAR(layer(job).forward.total_s(),
              products + flash_attention_forward_s(h100(), {T, T, 64, 192, 128}) + memory + 8 * tau,
              1e-12);
  model.latent_attention->query_rank.reset();  // then from hidden: 576 narrow ones remain
  job.model = model;
  EXPECT_NEAR(layer(job).forward.total_s() - products_forward_s({{T, h, 576}, {T, h, 64 * 192}}),
              products + flash_attention_forward_s(h100(), {T, T, 64, 192, 128}) + memory +
                  8 * tau - products_forward_s({{T, h, 2112}, {T, 1536, 64 * 192}}),
              1e-12);
}

TEST(LayerCosts, AWindowCutsAttention) {
  JobSpec job = job_on(llama3_8b(), 1);
  const PassPair whole = layer(job);
  job.model.attention_window = 1024;
  const PassPair window = layer(job);
  const AttentionShape shape{8192, 8192, 32, 128}, cut{8192, 8192, 32, 128, 0, 1024};
  EXPECT_NEAR(whole.forward.total_s() - window.forward.total_s(),
              flash_attention_forward_s(h100(), shape) - flash_attention_forward_s(h100(), cut),
              1e-12);
  // Seen: 1024 (1 - 1/16) of 8192, and 64 (2 - 1/8) of tiles: 1080 against 4160.
  EXPECT_NEAR(executed_attention_share(cut) * 8192, 1080, 1e-9);
  job.model.attention_window = 8192;
  EXPECT_DOUBLE_EQ(layer(job).forward.total_s(), whole.forward.total_s());
}

TEST(LayerCosts, AParallelBlockHasOneNormAndHalfTheTraffic) {
  JobSpec job = job_on(llama3_70b(), 8);
  const PassPair serial = layer(job, counted());
  job.model.parallel_block = true;
  const PassPair parallel = layer(job, counted());
  EXPECT_DOUBLE_EQ(serial.forward.exposed_tp_s, 2 * (1 + 2));
  EXPECT_DOUBLE_EQ(parallel.forward.exposed_tp_s, 1 + 2);
  EXPECT_NEAR(serial.forward.compute_s() - parallel.forward.compute_s(),
              bytes_s(1.05 * 4 * 8192.0 * 8192 / 8), 1e-12);
}

TEST(LayerCosts, ExpertsByHand) {
  // 4 ranks, 2 of tensor and 2 of expert parallelism, 8192 tokens a tensor-parallel group: 4
  // experts on a rank, each on both tensor ranks (width 1536) with 2 . 8192 . 2 / 8 = 4096 rows.
  JobSpec job = job_on(mixture(), 2);
  job.gpus = 4;
  job.global_batch = 2;
  job.parallel.expert = 2;
  job.software.expert_permute = 3;
  job.software.expert_overlap = 0.25;
  const double T = 8192, h = 1024;
  const double attention = flash_attention_forward_s(h100(), {T, T, 8, 64});
  const double dense =
      products_forward_s({{T, h, (8 + 2 * 4) * 64}, {T, 8 * 64, h}, {T / 2, h, 8}});
  const double residual = 20 * h * T / 2 + 8 * 12 * 64 * T;
  const double rows = 4 * 4096;
  const double expected =
      dense + attention + 8 * tau +
      products_forward_s({{4096, h, 2 * 1536, 4}, {4096, 1536, h, 4}}) +
      bytes_s(1.05 * (residual + 6 * 1536 * rows) + 3 * h * (12 * rows + 4 * T / 2));
  PassPair cost = layer(job, counted());
  EXPECT_NEAR(cost.forward.compute_s(), expected, 1e-12);
  // Dispatch and combine; then every copy is gathered on both ranks of its expert and scattered.
  // An exchange much longer than the compute beside it: what is longer.
  const auto beside = [&] { return (cost.forward.compute_s() + cost.backward.compute_s()) / 2; };
  EXPECT_NEAR(cost.forward.exposed_ep_s, 2 * 128 - beside() + 1 + 2, 1e-9);
  EXPECT_NEAR(cost.backward.exposed_ep_s, 2 * 128 - beside() + 1 + 2, 1e-9);
  EXPECT_DOUBLE_EQ(cost.forward.exposed_tp_s, 1 + 2);  // around attention alone
  EXPECT_EQ(without(&Mechanisms::expert_traffic, job, counted()).forward.exposed_ep_s, 0);

  // Whole experts on every rank: half the rows of twice the width, and nothing to gather for them.
  job.parallel.expert_tensor = 1;
  cost = layer(job, counted());
  EXPECT_NEAR(
      cost.forward.compute_s(),
      dense + attention + 8 * tau +
          products_forward_s({{2048, h, 2 * 3072, 4}, {2048, 3072, h, 4}}) +
          bytes_s(1.05 * (residual + 6 * 1536 * rows) + 3 * h * (12 * rows / 2 + 4 * T / 2)),
      1e-12);
  EXPECT_DOUBLE_EQ(cost.forward.exposed_tp_s, 1 + 2);
  EXPECT_NEAR(cost.forward.exposed_ep_s, 2 * 128 - beside(), 1e-9);

  // One shared expert of width 512: every token, split over the tensor ranks.
  job.parallel.expert_tensor.reset();
  job.model.experts->shared = 1;
  job.model.experts->shared_ffn = 512;
  cost = layer(job, counted());
  EXPECT_NEAR(
      cost.forward.compute_s(),
      expected + products_forward_s({{T, h, 2 * 256}, {T, 256, h}}) + bytes_s(1.05 * 6 * T * 256),
      1e-12);
  EXPECT_DOUBLE_EQ(cost.forward.exposed_tp_s, 2 * (1 + 2));  // it needs all tokens
  // A capacity of 1.5: half as many slots again, all computed.
  job.model.experts->shared = 0;
  job.model.experts->shared_ffn.reset();
  job.model.experts->capacity_factor = 1.5;
  cost = layer(job, counted());
  EXPECT_NEAR(cost.forward.compute_s(),
              dense + attention + 8 * tau +
                  products_forward_s({{6144, h, 2 * 1536, 4}, {6144, 1536, h, 4}}) +
                  bytes_s(1.05 * (residual + 6 * 1536 * 1.5 * rows) +
                          3 * h * (12 * 1.5 * rows + 4 * T / 2)),
              1e-12);
}

TEST(LayerCosts, TokensAreSortedAsTheDispatcherDoes) {
  JobSpec job = job_on(mixture(), 1);
  job.gpus = 8;
  job.global_batch = 8;
  job.parallel.expert = 4;  // two experts a rank, 2 . 8192 rows
  job.software.expert_permute = 1;
  const double h = 1024, rows = 2 * 8192;
  const auto forward = [&] { return layer(job).forward.compute_s(); };
  const double plain = forward();
  job.software.fused_permute = false;
  EXPECT_NEAR(forward() - plain, bytes_s((14 - 4) * rows * h), 1e-12);
  job.software.fused_permute = true;
  job.software.expert_deduplication = true;  // rows from what arrived instead of sorting: 4, not 8
  EXPECT_NEAR(forward() - plain, bytes_s((4 - 8) * rows * h), 1e-12);
  const double deduplicated = forward();
  job.software.fused_experts = true;  // no activation of its own
  EXPECT_NEAR(deduplicated - forward(), bytes_s(1.05 * 6 * rows * 3072), 1e-12);
}

TEST(LayerCosts, AnExchangeBesideTheOtherPassLeavesAShare) {
  JobSpec job = job_on(mixture(), 1);
  job.gpus = 8;
  job.global_batch = 8;
  job.parallel.expert = 4;
  CommCosts comm = CommCosts::free();
  comm.expert_exchange_s = [](const ExpertExchange&) { return 1e-6; };
  EXPECT_DOUBLE_EQ(layer(job, comm).forward.exposed_ep_s, 2e-6);
  job.software.expert_overlap = 0.75;
  EXPECT_DOUBLE_EQ(layer(job, comm).forward.exposed_ep_s, 0.5e-6);
}

TEST(LayerCosts, ALayerWithExpertsHasAHostFloorOfItsOwn) {
  JobSpec job = job_on(mixture(), 1);
  job.software.expert_host_floor = seconds(1);
  EXPECT_DOUBLE_EQ(layer(job).forward.compute_s(), 1);
  job.software.cuda_graphs = true;
  EXPECT_LT(layer(job).forward.compute_s(), 1);
}

TEST(LayerCosts, TheExchangeCarriesTheTokensOfTheRank) {
  JobSpec job = job_on(mixture(), 2);
  job.gpus = 4;
  job.global_batch = 2;
  job.parallel.expert = 2;
  job.model.experts->server_limit = 4;
  job.software.expert_deduplication = true;
  std::vector<ExpertExchange> seen;
  CommCosts comm = CommCosts::free();
  comm.expert_exchange_s = [&seen](const ExpertExchange& x) {
    seen.push_back(x);
    return 0.0;
  };
  layer(job, comm);
  ASSERT_EQ(seen.size(), 1u);  // asked once, used four times
  EXPECT_DOUBLE_EQ(seen[0].tokens, 4096);
  EXPECT_DOUBLE_EQ(seen[0].token_bytes, 2048);
  EXPECT_EQ(seen[0].per_token, 2);
  EXPECT_TRUE(seen[0].deduplicate);
  EXPECT_EQ(seen[0].server_limit, 4);
  without(&Mechanisms::deduplication, job, comm);
  EXPECT_FALSE(seen.back().deduplicate);
}

TEST(LayerCosts, TensorTrafficAndWhatHidesIt) {
  JobSpec job = job_on(llama3_70b(), 8);
  job.software.tensor_overlap_forward = 0.75;
  job.software.tensor_overlap_backward = 0.5;
  job.software.tensor_regather = 0.6;
  PassPair cost = layer(job, counted());
  EXPECT_DOUBLE_EQ(cost.forward.exposed_tp_s, 0.25 * (2 * 1 + 2 * 2));
  EXPECT_DOUBLE_EQ(cost.backward.exposed_tp_s, 0.5 * (2 * 1 + 2 * 2) + 0.6 * 1);
  cost = without(&Mechanisms::tensor_overlap, job, counted());
  EXPECT_DOUBLE_EQ(cost.forward.exposed_tp_s, 2 * 1 + 2 * 2);
  EXPECT_DOUBLE_EQ(cost.backward.exposed_tp_s, 2 * 1 + 2 * 2 + 0.6 * 1);
  cost = without(&Mechanisms::tensor_traffic, job, counted());
  EXPECT_EQ(cost.forward.exposed_tp_s + cost.backward.exposed_tp_s, 0);
  job.parallel.sequence_parallel = false;
  cost = layer(job, counted());
  EXPECT_DOUBLE_EQ(cost.forward.exposed_tp_s, 2 * 4);
  EXPECT_DOUBLE_EQ(cost.backward.exposed_tp_s, 0.5 * 2 * 4);
}

TEST(LayerCosts, GathersInOneByteOnlyInFrontOfFp8Products) {
  JobSpec job = job_on(llama3_70b(), 8);
  CommCosts comm = CommCosts::free();
  comm.tensor.all_gather_s = [](double bytes) { return bytes; };
  const double bytes = 2.0 * 8192 * 8192;
  job.software.gather_in_fp8 = true;
  EXPECT_DOUBLE_EQ(layer(job, comm).forward.exposed_tp_s, 2 * bytes);
  job.parallel.precision = Precision::fp8;
  EXPECT_DOUBLE_EQ(layer(job, comm).forward.exposed_tp_s, 2 * bytes / 2);
  job.software.gather_in_fp8 = false;
  EXPECT_DOUBLE_EQ(layer(job, comm).forward.exposed_tp_s, 2 * bytes);
}

TEST(LayerCosts, RecomputationRepeatsWhatItDropped) {
  JobSpec job = job_on(llama3_70b(), 8, 2);
  job.software.tensor_overlap_forward = 0.5;
  const PassPair none = layer(job, counted());
  const auto extra = [&](Recompute recompute, double share) {
    job.parallel.recompute = recompute;
    job.parallel.recompute_share = share;
    PassCost cost = layer(job, counted()).backward;
    EXPECT_DOUBLE_EQ(cost.compute_s() - cost.recompute_s, none.backward.compute_s());
    cost.exposed_tp_s -= none.backward.exposed_tp_s;
    cost.exposed_cp_s -= none.backward.exposed_cp_s;
    return cost;
  };
  const double T = 4096, h = 8192;
  const double attention = 1.025 * flash_attention_forward_s(h100(), {T, 8192, 8, 128});
  const double products =
      products_forward_s({{T, h, 10 * 128}, {T, h / 8, h}, {T, h, 2 * 3584}, {T, 3584, h}});
  const double memory = none.forward.compute_s() - products - attention;
  const double tensor = 0.5 * 6, context = none.forward.exposed_cp_s;

  const PassCost selective = extra(Recompute::selective, 1);
  EXPECT_NEAR(selective.recompute_s, attention, 1e-12);
  EXPECT_NEAR(selective.exposed_tp_s, 0, 1e-12);
  EXPECT_NEAR(selective.exposed_cp_s, context, 1e-12);
  const PassCost operations = extra(Recompute::per_operation, 1);
  EXPECT_NEAR(operations.recompute_s, products / 2 + memory, 1e-12);
  EXPECT_NEAR(operations.exposed_tp_s, tensor / 2, 1e-12);
  const PassCost full = extra(Recompute::full, 1);
  EXPECT_NEAR(full.recompute_s, none.forward.compute_s(), 1e-12);
  EXPECT_NEAR(full.exposed_tp_s, tensor, 1e-12);
  EXPECT_NEAR(full.exposed_cp_s, context, 1e-12);
  const PassCost third = extra(Recompute::full, 0.25);
  EXPECT_NEAR(third.recompute_s, none.forward.compute_s() / 4, 1e-12);
  EXPECT_NEAR(third.exposed_tp_s, tensor / 4, 1e-12);
  job.parallel.recompute = Recompute::full;
  EXPECT_DOUBLE_EQ(without(&Mechanisms::recompute, job, counted()).backward.total_s(),
                   none.backward.total_s());
}

TEST(LayerCosts, TheHostRulesTinyLayersUnlessGraphsLaunchThem) {
  JobSpec job = job_on(llama3(4, 256, 8, 512), 1);
  job.sequence = 128;
  job.software.host_floor = std::chrono::microseconds(300);
  EXPECT_DOUBLE_EQ(layer(job).forward.total_s(), 300 * us);
  EXPECT_DOUBLE_EQ(layer(job).backward.total_s(), 300 * us);
  const double alone = without(&Mechanisms::host_floor, job).forward.total_s();
  EXPECT_LT(alone, 300 * us);
  job.software.cuda_graphs = true;
  EXPECT_DOUBLE_EQ(layer(job).forward.total_s(), alone);
  // The host launches while the GPU waits for others: exposed traffic counts.
  job.software.cuda_graphs = false;
  job.parallel.tensor = 2;
  job.gpus = 2;
  CommCosts slow = CommCosts::free();
  slow.tensor.all_gather_s = slow.tensor.reduce_scatter_s = [](double) { return 50 * us; };
  EXPECT_NEAR(layer(job, slow).forward.total_s(), 300 * us, 1e-15);
}

TEST(LayerCosts, CastsOfNarrowPrecisions) {
  JobSpec job = job_on(llama3_70b(), 8);
  const double T = 8192, h = 8192, f = 3584;
  const auto forward = [&](Precision precision) {
    job.parallel.precision = precision;
    return layer(job, CommCosts::free(), gb200()).forward.total_s();
  };
  const auto products = [&](Operands operands) {
    double sum = 0;
    for (const LinearShape& linear :
         std::vector<LinearShape>{{T, h, 10 * 128}, {T, h / 8, h}, {T, h, 2 * f}, {T, f, h}})
      sum += linear_forward_s(gb200(), operands, linear);
    return sum;
  };
  const double rest = forward(Precision::bf16) - products(Operands::bits16);
  const double casts = hbm_s(gb200(), 0.95 * T * (8 * h / 8 + 4 * h / 8 + 4 * f));
  EXPECT_NEAR(forward(Precision::fp16), rest + products(Operands::bits16), 1e-12);
  EXPECT_NEAR(forward(Precision::fp8), rest + products(Operands::fp8) + casts + 4 * tau, 1e-12);
  EXPECT_NEAR(forward(Precision::fp8_rowwise),
              rest + products(Operands::fp8_rowwise) + casts + 4 * tau, 1e-12);
  EXPECT_NEAR(forward(Precision::mxfp8), rest + products(Operands::mxfp8) + 1.5 * casts + 4 * tau,
              1e-12);
  EXPECT_NEAR(forward(Precision::nvfp4), rest + products(Operands::nvfp4) + 1.5 * casts + 4 * tau,
              1e-12);
}

// What is saved by leaving out a mechanism of the kernels, by hand.
TEST(Mechanism, OfKernels) {
  const JobSpec job = job_on(llama3_8b(), 1);
  const PassPair all = layer(job);
  const double T = 8192, h = 4096, f = 14336;
  const std::vector<LinearShape> linears{{T, h, 6144}, {T, h, h}, {T, h, 2 * f}, {T, f, h}};
  const double products = products_forward_s(linears);
  const auto saved = [&](bool Mechanisms::*mechanism) {
    return all.forward.total_s() - without(mechanism, job).forward.total_s();
  };
  EXPECT_NEAR(saved(&Mechanisms::memory_bound_work),
              bytes_s(1.05 * T * (20 * h + 6 * f + 8 * 40 * 128)), 1e-12);
  EXPECT_NEAR(saved(&Mechanisms::gemm_shape),
              products - products_forward_s(linears, Operands::bits16, {.shape = false}), 1e-12);
  EXPECT_NEAR(saved(&Mechanisms::k_saturation),
              products - products_forward_s(linears, Operands::bits16, {.saturation = false}),
              1e-12);
  EXPECT_GT(saved(&Mechanisms::gemm_shape), saved(&Mechanisms::k_saturation));
  EXPECT_NEAR(saved(&Mechanisms::kernel_floor), (4 + 1 + 8) * tau, 1e-12);
}

}  // namespace
}  // namespace trainyard::models
