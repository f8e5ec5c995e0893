// What encoding images takes: iterations carried out one by one on an executor, each size once; and beside
// the iterations of a language model, where no pool of their own encodes them.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/schedule/recorder.h"
#include "workloads/schedule/steady_timer.h"
#include "workloads/serving/separation/lower_encoder.h"
#include "workloads/serving/system/step.h"

namespace moebius {

// One replica of an encoder: all its ranks do the same.
Layout encoder_layout(int tp);

class EncoderTimer {
 public:
  // The timer's executor has encoder_layout() and has been given nothing; it and the recorder outlive this.
  EncoderTimer(const EncoderWork& work, SteadyTimer timer, Recorder& recorder)
      : work_(work), timer_(timer), recorder_(recorder) {}

  // Of so many images, at most max_batch at a time.
  double seconds(std::int64_t images);
  // What an image's work draws, by the iterations that were carried out; see BusySources.
  double joules_per_image() const { return images_ > 0 ? joules_ / images_ : 0; }

 private:
  double iteration(int images);

  EncoderWork work_;
  SteadyTimer timer_;
  Recorder& recorder_;
  std::vector<double> known_;       // by images; below 0: not carried out yet
  double images_ = 0, joules_ = 0;  // of them
  std::int32_t sequence_ = 0;
};

// Replicas of a language model that encode the images of the prompts which begin in an iteration, before it.
class EncodingCost : public StepCost {
 public:
  EncodingCost(StepCost& model, EncoderTimer& encoder) : model_(model), encoder_(encoder) {}
  // The model's part begins when its images are encoded.
  void begin(Time now, bool gives_tokens) override { now_ = now, gives_tokens_ = gives_tokens; }
  double seconds(std::span<const StepShape> replicas) override;
  StepStalls stalls(std::span<const StepShape> replicas, double seconds) override {
    return model_.stalls(replicas, seconds - last_);
  }
  double balancedness() const override { return model_.balancedness(); }
  double forecast(std::span<const StepShape> replicas) override;

  struct Totals {
    std::int64_t images = 0;
    double seconds = 0;
  };
  const Totals& totals() const { return totals_; }  // of all iterations

 private:
  double encode(std::span<const StepShape> replicas, std::int64_t& images);

  StepCost& model_;
  EncoderTimer& encoder_;
  Time now_;
  bool gives_tokens_ = true;
  double last_ = 0;  // seconds of the images of the iteration that was asked for last
  Totals totals_;
};

}  // namespace moebius
