#include "models/network/lossy_ethernet.hpp"

#include <algorithm>
#include <cmath>

#include "sim/check.hpp"

namespace trainyard::models {

namespace {

/// What the formulas speak of.
struct Message {
  double p;    // loss rate
  double n;    // packets
  double tau;  // seconds of one
  double rtt;
  double timeout;
  double edges;  // messages that are awaited together
};

/// Each of n-1 packets that are followed by others may be lost: the first later one that arrives
/// (1/(1-p) packets on) shows the gap, and a round trip later it is sent again. A retransmission is
/// sent until it arrives, with a timeout after each failure. The last packet has timeouts only.
void add_go_back_n(const Message& m, LossyStretch& result) {
  const double losses = m.p * m.n, gaps = m.p * (m.n - 1), sent_again = 1 / (1 - m.p);
  result.retransmissions_s = gaps * m.tau * sent_again + losses * m.tau * sent_again;
  result.waiting_s = gaps * m.rtt;
  const double timeouts = losses * m.p * sent_again + m.p;  // mean number
  // At least one, of one message and of any.
  const double one = -std::expm1(std::log1p(-m.p) - m.p * m.p * (m.n - 1));
  const double any = -std::expm1(m.edges * std::log1p(-one));
  result.timeouts_s = timeouts * m.timeout * any / one;
}

/// Mean of (limit - t) over the first event of a Poisson process, if it comes before `until`: the
/// retransmission nearest to the end, lost again, holds the message for the rest of its timeout.
double mean_rest(double rate, double limit, double until) {
  const double x = rate * until;
  const double used = x < 1e-4 ? x * x / 2 - x * x * x / 3 : 1 - std::exp(-x) * (1 + x);
  return rate == 0 ? 0.0 : -limit * std::expm1(-x) - used / rate;
}

/// Losses cost their own packets, and at the end the wait for the last of them. If the last packet
/// lost is u before the end, u >= 1, it is seen one packet later and is back after a round trip:
/// R + tau - u·tau after everything else. u = 0: timeout.
void add_selective_repeat(const Message& m, LossyStretch& result) {
  const double q = 1 - m.p;
  result.retransmissions_s = m.n * m.tau * m.p / q;
  double chance = m.p;
  for (double u = 1; u < m.n; ++u) {
    chance *= q;
    const double rest_s = m.rtt + m.tau - u * m.tau;
    if (rest_s <= 0 || chance < 1e-18) break;
    result.waiting_s += chance * rest_s;
  }
  const double limit = m.timeout / q + m.rtt + m.tau;
  const double some_last = -std::expm1(m.edges * std::log1p(-m.p));
  result.timeouts_s = some_last * m.timeout / q + mean_rest(m.edges * m.p * m.p / m.tau, limit,
                                                            std::min(limit, (m.n - 1) * m.tau));
}

}  // namespace

LossyStretch lossy_stretch(const LossSpec& loss, double bandwidth_Bps, double rtt_s,
                           double message_bytes, double mtu_bytes, std::size_t edges) {
  check(loss.loss_rate >= 0 && loss.loss_rate < 1, "a loss rate is a probability below one",
        loss.loss_rate);
  check(bandwidth_Bps > 0 && rtt_s >= 0 && message_bytes >= 0 && mtu_bytes > 0 && edges >= 1,
        "a message moves over a link in packets", bandwidth_Bps, rtt_s, message_bytes, mtu_bytes);
  LossyStretch result;
  result.lossless_s = result.time_s = message_bytes / bandwidth_Bps;
  if (message_bytes == 0 || loss.loss_rate == 0) return result;

  const double timeout_s = to_seconds(loss.timeout);
  const double packets = std::ceil(message_bytes / mtu_bytes);
  // A shorter timeout would fire while the answer is under way.
  const Message m{loss.loss_rate,
                  packets,
                  result.lossless_s / packets,
                  rtt_s,
                  std::max(timeout_s, rtt_s + result.lossless_s / packets),
                  static_cast<double>(edges)};
  loss.recovery == LossRecovery::go_back_n ? add_go_back_n(m, result)
                                           : add_selective_repeat(m, result);
  result.time_s =
      result.lossless_s + result.retransmissions_s + result.waiting_s + result.timeouts_s;
  result.stretch = result.time_s / result.lossless_s;

  if (m.p > 0.01)
    result.notes.push_back(
        "outside validated range: more than one packet in a hundred lost; "
        "such losses come in bursts, and senders slow down");
  if (timeout_s < m.timeout)
    result.notes.push_back(
        "outside validated range: the timeout is shorter than a round trip; "
        "counted as a round trip");
  if (edges > 1 && m.p * m.n > 0.1 && loss.recovery == LossRecovery::go_back_n)
    result.notes.push_back(
        "outside validated range: several messages lose packets in one step; "
        "the slowest waits for more round trips than the mean");
  return result;
}

}  // namespace trainyard::models
