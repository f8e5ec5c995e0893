# `cmake --install`, a Debian package and a tarball that runs where nothing is installed (`cpack -G DEB`, `cpack -G TGZ`).
# The tarball brings every library but the C library's own; the Debian package names what it needs.
include(GNUInstallDirs)

# RPATH and not RUNPATH: libraries that come along find each other by it, too.
set_target_properties(moebius PROPERTIES INSTALL_RPATH "$ORIGIN:$ORIGIN/../lib/moebius" BUILD_WITH_INSTALL_RPATH ON)
target_link_options(moebius PRIVATE -Wl,--disable-new-dtags)

foreach(form man bash zsh)
  list(APPEND MANUALS ${CMAKE_BINARY_DIR}/manual/moebius.${form})
  add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/manual/moebius.${form} DEPENDS moebius
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/manual
    COMMAND moebius manual ${form} > ${CMAKE_BINARY_DIR}/manual/moebius.${form})
endforeach()
add_custom_target(manual ALL DEPENDS ${MANUALS})

install(TARGETS moebius RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
if(TARGET simgrid_module)
  set(MODULES MODULES $<TARGET_FILE:simgrid_module>)
  set_target_properties(simgrid_module PROPERTIES INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON)
  target_link_options(simgrid_module PRIVATE -Wl,--disable-new-dtags)
  install(TARGETS simgrid_module LIBRARY DESTINATION lib/moebius COMPONENT program)
endif()
install(FILES ${CMAKE_BINARY_DIR}/manual/moebius.man DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 RENAME moebius.1 COMPONENT files)
install(FILES ${CMAKE_BINARY_DIR}/manual/moebius.bash RENAME moebius
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT files)
install(FILES ${CMAKE_BINARY_DIR}/manual/moebius.zsh RENAME _moebius
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT files)
install(DIRECTORY scenarios DESTINATION ${CMAKE_INSTALL_DATADIR}/moebius COMPONENT files)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT files)

# Of the tarball in place of the program: program and libraries in one folder, and a script that says where they are even
# where /proc, by which the loader knows what $ORIGIN is, is not mounted (a bare chroot).
install(TARGETS moebius RUNTIME DESTINATION lib/moebius COMPONENT bundle EXCLUDE_FROM_ALL)
if(TARGET simgrid_module)
  install(TARGETS simgrid_module LIBRARY DESTINATION lib/moebius COMPONENT bundle EXCLUDE_FROM_ALL)
endif()
install(PROGRAMS ${CMAKE_CURRENT_LIST_DIR}/moebius.sh DESTINATION bin RENAME moebius COMPONENT bundle EXCLUDE_FROM_ALL)
install(CODE "
  file(GET_RUNTIME_DEPENDENCIES EXECUTABLES $<TARGET_FILE:moebius> ${MODULES}
    RESOLVED_DEPENDENCIES_VAR libraries UNRESOLVED_DEPENDENCIES_VAR missing
    POST_EXCLUDE_REGEXES \"/(ld-linux[^/]*|libc|libm|libdl|librt|libpthread|libresolv|libutil)\\\\.so[^/]*$\")
  foreach(library \${libraries})
    file(INSTALL \${library} DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/moebius\" FOLLOW_SYMLINK_CHAIN)
  endforeach()
  if(missing)
    message(FATAL_ERROR \"libraries that are not here: \${missing}\")
  endif()" COMPONENT bundle EXCLUDE_FROM_ALL)

set(CPACK_PACKAGE_NAME moebius)
set(CPACK_PACKAGE_CONTACT "Moebius <moebius@localhost>")
set(CPACK_PACKAGE_VENDOR Moebius)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Simulates Mixture-of-Experts training and inference on any cluster and executes the same schedules")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME moebius-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
# Which components a package has, and whether they stand in a folder of their own, by its generator.
file(WRITE ${CMAKE_BINARY_DIR}/package_components.cmake
  "if(CPACK_GENERATOR STREQUAL \"TGZ\")
  set(CPACK_COMPONENTS_ALL bundle files)
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
else()
  set(CPACK_COMPONENTS_ALL program files)
endif()
")
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_BINARY_DIR}/package_components.cmake)
include(CPack)
