# Run at every build (cmake -P): writes OUT where the commit or the version is another than before.
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=8 HEAD
  OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR COMMIT STREQUAL "")
  set(COMMIT unknown)
endif()
configure_file(${SOURCE}/workloads/version.cpp.in ${OUT} @ONLY)
