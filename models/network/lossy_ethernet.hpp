#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/describe.hpp"
#include "sim/time.hpp"

/// What packet loss adds to a message: Ethernet without priority flow control.
///
/// Not packets: the *mean* time of one message over a link of a given bandwidth, in closed form,
/// when each packet is lost with probability p independently of all others. N packets of tau
/// seconds each, R the round trip, T the timeout of the sender.
///
///     go-back-N (RoCE adapters). A later packet that arrives shows the gap; the receiver asks
///     once; R later the sender goes back, and everything sent in between was in vain. A
///     retransmission that is lost, or a lost last packet, shows no gap: timeout.
///
///         time = N·tau + p·(N-1)·(tau/(1-p) + R + r) + p·(T + r),     r = (tau + p·T)/(1-p)
///
///     selective repeat. Only what was lost is sent again, between the others: N·tau/(1-p), and at
///     the end the wait for what was lost in the last round trip, or for a timeout
///     (lossy_ethernet.cpp).
///
///     LossyStretch s = lossy_stretch({.loss_rate = 1e-4}, 50e9, 12e-6, 1048576, 4096);
///     time_s = s.stretch * bytes / bandwidth;            // 1 without loss
///
/// Source of the go-back-N efficiency (1-p)/(1-p+p·w), to which this reduces for long messages and
/// no timeouts: D. Bertsekas, R. Gallager, *Data Networks*, 2nd ed., 1992, section 2.4. Behaviour
/// of adapters: C. Guo et al., *RDMA over commodity Ethernet at scale*, SIGCOMM 2016; R. Mittal et
/// al., *Revisiting network support for RDMA*, SIGCOMM 2018. Page: docs/models/lossy-ethernet.md.
namespace trainyard::models {

enum class LossRecovery { go_back_n, selective_repeat };

struct LossSpec {
  double loss_rate = 0;  // of a packet, end to end
  LossRecovery recovery = LossRecovery::go_back_n;
  Duration timeout{67'108'864};  // of the sender; a RoCE queue pair has 4.096 us · 2^14
};

template <class Visitor>
void describe(Visitor& v, LossSpec& s) {
  v.optional("loss_rate", s.loss_rate, "probability that a packet is lost end to end",
             between(0, 0.5));
  v.optional("recovery", s.recovery, "how the adapter recovers: go-back-n or selective-repeat");
  v.optional("timeout", s.timeout, "retransmission timeout of the sender", above(0.0));
}

struct LossyStretch {
  double stretch = 1;  // mean time over time without loss
  double time_s = 0;   // mean
  double lossless_s = 0;
  double retransmissions_s = 0;  // of which: sent again, or sent in vain
  double waiting_s = 0;          // round trips in which nothing of use moves
  double timeouts_s = 0;
  std::vector<std::string> notes;  // "outside validated range: …"
};

/// One message of so many bytes in packets of `mtu_bytes` on a path of `bandwidth_Bps`.
/// `edges` > 1: the mean of the slowest of so many messages, of which all are awaited (a step of a
/// ring), as far as timeouts decide it: the chance that somebody waits for one grows with them.
LossyStretch lossy_stretch(const LossSpec& loss, double bandwidth_Bps, double rtt_s,
                           double message_bytes, double mtu_bytes, std::size_t edges = 1);

}  // namespace trainyard::models

namespace trainyard {
template <>
struct Names<models::LossRecovery> {
  static constexpr auto all =
      names<models::LossRecovery>({{models::LossRecovery::go_back_n, "go-back-n"},
                                   {models::LossRecovery::selective_repeat, "selective-repeat"}});
};
}  // namespace trainyard
