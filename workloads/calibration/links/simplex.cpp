#include "workloads/calibration/links/simplex.h"

#include <algorithm>

namespace moebius {
namespace {

constexpr int kMostRounds = 1500;
constexpr double kLeastGain = 1e-7;

struct Corner {
  std::vector<double> at;
  double loss = 0;
};

// centre + share x (centre - corner)
Corner beyond(const Loss& loss, const std::vector<double>& centre, const Corner& corner, double share) {
  Corner made{centre, 0};
  for (std::size_t i = 0; i < centre.size(); ++i) made.at[i] += share * (centre[i] - corner.at[i]);
  made.loss = loss(made.at);
  return made;
}

std::vector<double> centre_of_best(const std::vector<Corner>& corners) {
  std::vector<double> centre(corners.front().at.size(), 0);
  for (std::size_t c = 0; c + 1 < corners.size(); ++c)
    for (std::size_t i = 0; i < centre.size(); ++i)
      centre[i] += corners[c].at[i] / static_cast<double>(centre.size());
  return centre;
}

void shrink(const Loss& loss, std::vector<Corner>& corners) {
  for (std::size_t c = 1; c < corners.size(); ++c) corners[c] = beyond(loss, corners[0].at, corners[c], -0.5);
}

void replace_worst(const Loss& loss, std::vector<Corner>& corners) {
  const std::vector<double> centre = centre_of_best(corners);
  Corner& worst = corners.back();
  Corner mirrored = beyond(loss, centre, worst, 1);
  if (mirrored.loss < corners.front().loss) {
    Corner further = beyond(loss, centre, worst, 2);
    worst = further.loss < mirrored.loss ? std::move(further) : std::move(mirrored);
  } else if (mirrored.loss < corners[corners.size() - 2].loss) {
    worst = std::move(mirrored);
  } else if (Corner nearer = beyond(loss, centre, worst, -0.5); nearer.loss < worst.loss) {
    worst = std::move(nearer);
  } else {
    shrink(loss, corners);
  }
}

}  // namespace

std::vector<double> least_of(const Loss& loss, std::vector<double> start, double step) {
  std::vector<Corner> corners = {{start, loss(start)}};
  for (std::size_t i = 0; i < start.size(); ++i) {
    Corner corner{start, 0};
    corner.at[i] += step;
    corner.loss = loss(corner.at);
    corners.push_back(std::move(corner));
  }
  const auto by_loss = [](const Corner& a, const Corner& b) { return a.loss < b.loss; };
  for (int round = 0; round < kMostRounds; ++round) {
    std::stable_sort(corners.begin(), corners.end(), by_loss);
    if (corners.back().loss - corners.front().loss < kLeastGain) break;
    replace_worst(loss, corners);
  }
  return std::min_element(corners.begin(), corners.end(), by_loss)->at;
}

}  // namespace moebius
