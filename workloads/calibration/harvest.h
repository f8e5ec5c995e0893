// The parts of condense(): one function a group of published files. Each adds its tables to the harvest, in
// order.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "workloads/calibration/condense.h"
#include "workloads/calibration/csv.h"

namespace moebius {

// What the files of one directory give.
struct Harvest {
  const Accelerator& chip;
  std::filesystem::path directory;
  Profile profile;

  bool has(const char* file) const { return std::filesystem::exists(directory / file); }
  Csv open(const char* file, std::string_view only = "") const {
    return Csv((directory / file).string(), only);
  }
  bool is_ours(const std::string& hardware) const;
  void add_source(ProfileSource source);
  void add(TableDraft draft);
};

// A table without rows yet.
ProfileTable table_of(const char* name, std::vector<std::string> kinds, DType dtype,
                      std::vector<ProfileKey> site, std::vector<ProfileKey> axes);

void read_training_trace(Harvest& harvest);       // trace/condense_trace.cpp
void read_kernels(Harvest& harvest);              // condense_kernels.cpp
void read_primus_turbo(Harvest& harvest);         // condense_primus_turbo.cpp
void read_flashinfer_products(Harvest& harvest);  // condense_flashinfer.cpp
void read_flash_attention_2(Harvest& harvest);    // condense_flash_attention_2.cpp
void read_triton_attention(Harvest& harvest);     // condense_triton_attention.cpp
void read_power(Harvest& harvest);                // condense_power.cpp; after all that gives tables
// Parts of read_kernels(); `system` is the chip's name in the kernel database.
void read_quantise_kernels(Harvest& harvest, const std::string& system);   // condense_quantise.cpp
void read_attention_kernels(Harvest& harvest, const std::string& system);  // condense_attention.cpp
void read_latent_kernels(Harvest& harvest, const std::string& system);     // condense_mla.cpp
void read_expert_kernels(Harvest& harvest, const std::string& system);     // experts/condense_moe.cpp

}  // namespace moebius
