#pragma once

#include <string>

#include "models/compute/gpu_spec.hpp"

namespace trainyard::models {

/// A network adapter. Figures: scenarios/parts/nic/.
struct NicSpec {
  std::string name;
  BytesPerSecond rate{50e9};  // one direction
  double efficiency = 0.96;   // achieved over nominal for large messages
  Duration latency{10000};    // one message between two servers, software included
  Watts power{};
  Dollars price{};
};

template <class Visitor>
void describe(Visitor& v, NicSpec& s) {
  v.optional("name", s.name, "name shown in reports");
  v.required("rate", s.rate, "line rate, one direction", above(0));
  v.optional("efficiency", s.efficiency, "achieved over line rate for large messages",
             between(0.01, 1));
  v.optional("latency", s.latency,
             "one step of a collective between two servers, software included", at_least(0));
  v.optional("power", s.power, "power of one adapter", at_least(0));
  v.optional("price", s.price, "price of one adapter with its optic", at_least(0));
}

/// One server (node): a scale-up domain of `gpus`, and `nics` adapters.
struct ServerSpec {
  std::string name;
  GpuSpec gpu;
  int gpus = 8;
  NicSpec nic;
  int nics = 8;
  Watts power_overhead{};  // per server, everything but the GPUs, at load
  Dollars price{};         // without GPUs and NICs
};

template <class Visitor>
void describe(Visitor& v, ServerSpec& s) {
  v.optional("name", s.name, "name shown in reports");
  v.part("gpu", s.gpu, "gpu", "the accelerator");
  v.optional("gpus", s.gpus, "accelerators in one scale-up domain", between(1, 72));
  v.part("nic", s.nic, "nic", "the network adapter");
  v.optional("nics", s.nics, "network adapters for training traffic", between(1, 72));
  v.optional("power_overhead", s.power_overhead, "power of one server without its GPUs, at load",
             at_least(0));
  v.optional("price", s.price, "price of one server without GPUs and adapters", at_least(0));
  v.check(s.gpus % s.nics == 0, "nics",
          "must divide the GPUs of a server evenly (each NIC serves the same number of GPUs)");
}

}  // namespace trainyard::models
