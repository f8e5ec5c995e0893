# The CUDA executor. Its logic is plain C++ and always compiled; the device's half (*.cu) needs nvcc. Only the static
# runtime is linked: cuBLASLt is opened at run time, so that the binary starts on machines without any of it.

# The executor without a device: cuda_room joins it with the real one, tests with one of CPU threads.
file(GLOB cuda_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cpp)
list(REMOVE_ITEM cuda_sources ${CMAKE_CURRENT_LIST_DIR}/without_cuda.cpp)
add_library(cuda_executor OBJECT ${cuda_sources})
join_folders(${cuda_sources})
set_target_properties(cuda_executor PROPERTIES UNITY_BUILD_MODE GROUP)
target_link_libraries(cuda_executor PUBLIC real_room ${CMAKE_DL_LIBS})

# nvcc is seldom on PATH.
if(NOT CUDA STREQUAL OFF)
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(NVCC nvcc PATHS /usr/local/cuda/bin)
    if(NVCC)
      set(CMAKE_CUDA_COMPILER ${NVCC})
    endif()
  endif()
  # Before CMake can set a default of its own.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES OFF)
  endif()
  include(CheckLanguage)
  check_language(CUDA)
endif()
if(CUDA STREQUAL ON AND NOT CMAKE_CUDA_COMPILER)
  message(FATAL_ERROR "CUDA=ON, and no nvcc: neither on PATH nor in /usr/local/cuda/bin")
endif()

add_library(cuda_room STATIC)
set_target_properties(cuda_room PROPERTIES OUTPUT_NAME moebius_cuda)
if(CUDA STREQUAL OFF OR NOT CMAKE_CUDA_COMPILER)
  message(STATUS "cuda executor: off, no nvcc or CUDA=OFF")
  target_sources(cuda_room PRIVATE ${CMAKE_CURRENT_LIST_DIR}/without_cuda.cpp)
  target_link_libraries(cuda_room PUBLIC real_room)
  return()
endif()
target_link_libraries(cuda_room PUBLIC cuda_executor)

set(HAVE_CUDA ON)
enable_language(CUDA)
# CMake 3.25.1 knows no CUDA 20, nvcc does.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
endif()
set(architectures ${CUDA_ARCHITECTURES})
if(NOT architectures)
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
    OUTPUT_VARIABLE present OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed EQUAL 0 AND present MATCHES "^[0-9]+\\.[0-9]+")
    string(REPLACE "\n" ";" present "${present}")
    string(REPLACE "." "" present "${present}")
    list(REMOVE_DUPLICATES present)
    list(TRANSFORM present REPLACE "^90$" "90a")  # wgmma is of this architecture alone
    list(TRANSFORM present APPEND "-real" OUTPUT_VARIABLE architectures)
  else()
    set(architectures 90a-real 90-virtual)
  endif()
endif()
message(STATUS "cuda executor: on, ${CMAKE_CUDA_COMPILER}, for ${architectures}")
file(GLOB device_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cu)
target_sources(cuda_room PRIVATE ${device_sources})
set_target_properties(cuda_room PROPERTIES CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON CUDA_EXTENSIONS OFF
  CUDA_RUNTIME_LIBRARY Static CUDA_ARCHITECTURES "${architectures}")
