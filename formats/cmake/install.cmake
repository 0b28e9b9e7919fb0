# SPDX-License-Identifier: MIT
# cmake --install: libraries, headers under include/directp, a CMake package, a pkg-config file and
# the command where it is built.
include(CMakePackageConfigHelpers)

set_target_properties(directp_formats PROPERTIES EXPORT_NAME formats)
set_target_properties(directp_ref PROPERTIES EXPORT_NAME ref)
install(TARGETS directp_formats directp_ref EXPORT directpTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET directp)
  install(TARGETS directp RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# Private headers of the C sources stay behind.
foreach(folder formats ref)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/directp FILES_MATCHING PATTERN "*.h"
          PATTERN "*_internal.h" EXCLUDE PATTERN "*_plan.h" EXCLUDE
          PATTERN "cmake" EXCLUDE)
endforeach()

set(DP_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/directp)
install(EXPORT directpTargets NAMESPACE directp:: DESTINATION ${DP_PACKAGE_DIR})
configure_package_config_file(formats/cmake/directpConfig.cmake.in
  ${PROJECT_BINARY_DIR}/directpConfig.cmake INSTALL_DESTINATION ${DP_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/directpConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/directpConfig.cmake
              ${PROJECT_BINARY_DIR}/directpConfigVersion.cmake DESTINATION ${DP_PACKAGE_DIR})

# The prefix of a pkg-config file is that of the installation, known only when it happens.
cmake_path(APPEND DP_PC_LIBDIR "\${prefix}" ${CMAKE_INSTALL_LIBDIR})
cmake_path(APPEND DP_PC_INCLUDEDIR "\${prefix}" ${CMAKE_INSTALL_INCLUDEDIR} directp)
install(CODE "
  set(PROJECT_DESCRIPTION \"${PROJECT_DESCRIPTION}\")
  set(PROJECT_VERSION \"${PROJECT_VERSION}\")
  set(DP_PC_LIBDIR [[${DP_PC_LIBDIR}]])
  set(DP_PC_INCLUDEDIR [[${DP_PC_INCLUDEDIR}]])
  configure_file(\"${PROJECT_SOURCE_DIR}/formats/cmake/directp.pc.in\"
                 \"${PROJECT_BINARY_DIR}/directp.pc\" @ONLY)")
install(FILES ${PROJECT_BINARY_DIR}/directp.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
