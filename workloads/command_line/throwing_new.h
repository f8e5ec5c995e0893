// For main.cpp alone. Memory is mimalloc's, a library in C whose own operator new ends the process without a
// word where there is no memory left; here it throws, as outcome_of() and Recorder::make_room() count on. A
// std::new_handler does not help: the library looks for it under a weak name of its own.
#pragma once

#ifdef MOEBIUS_MIMALLOC
#include <mimalloc.h>

#include <cstddef>
#include <new>

void* operator new(std::size_t bytes) {
  if (void* const memory = mi_malloc(bytes)) return memory;
  throw std::bad_alloc();
}

void* operator new[](std::size_t bytes) {
  return operator new(bytes);
}

void* operator new(std::size_t bytes, std::align_val_t alignment) {
  if (void* const memory = mi_malloc_aligned(bytes, static_cast<std::size_t>(alignment))) return memory;
  throw std::bad_alloc();
}

void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return operator new(bytes, alignment);
}
#endif
