// NCCL's functions, found in the library at run time. What nccl.h states of them is checked where it is at
// hand.
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

#include "real/cuda/nccl.h"
#include "real/cuda/shared_library.h"

namespace moebius::cuda {

#if __has_include(<nccl.h>)
static_assert(ncclSuccess == 0 && ncclSum == kNcclSum && ncclUint8 == kNcclUint8);
static_assert(ncclFloat32 == kNcclFloat32 && ncclBfloat16 == kNcclBfloat16);
static_assert(sizeof(ncclResult_t) == sizeof(int) && sizeof(ncclDataType_t) == sizeof(int));
static_assert(sizeof(ncclComm_t) == sizeof(NcclComm*) && sizeof(cudaStream_t) == sizeof(Stream));
#endif

NcclFunctions open_nccl_functions() {
  const SharedLibrary library({"libnccl.so.2", "libnccl.so", "/usr/local/cuda/lib64/libnccl.so.2"});
  NcclFunctions f;
  library.find("ncclGetVersion", f.version);
  library.find("ncclGetErrorString", f.error_text);
  library.find("ncclCommInitAll", f.init_all);
  library.find("ncclCommDestroy", f.destroy);
  library.find("ncclGroupStart", f.group_start);
  library.find("ncclGroupEnd", f.group_end);
  library.find("ncclAllReduce", f.all_reduce);
  library.find("ncclReduceScatter", f.reduce_scatter);
  library.find("ncclAllGather", f.all_gather);
  library.find("ncclBroadcast", f.broadcast);
  library.find("ncclSend", f.send);
  library.find("ncclRecv", f.receive);
  return f;
}

}  // namespace moebius::cuda
