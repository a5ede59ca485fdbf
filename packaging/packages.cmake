# What other projects use of an installed Heapwise (CMake, pkg-config, meson), and packages: cpack -G DEB, cpack -G RPM.

# ---- for other projects ----

include(CMakePackageConfigHelpers)
set(HEAPWISE_CMAKEDIR lib/cmake/Heapwise)
set(bindir bin)
set(datadir ${HEAPWISE_DATADIR})
set(includedir include)
set(libdir ${HEAPWISE_LIBDIR})
configure_package_config_file(packaging/cmake/HeapwiseConfig.cmake.in packaging/HeapwiseConfig.cmake
    INSTALL_DESTINATION ${HEAPWISE_CMAKEDIR} PATH_VARS bindir datadir includedir libdir)
write_basic_package_version_file(packaging/HeapwiseConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/packaging/HeapwiseConfig.cmake
    ${CMAKE_CURRENT_BINARY_DIR}/packaging/HeapwiseConfigVersion.cmake DESTINATION ${HEAPWISE_CMAKEDIR})
install(PROGRAMS packaging/run-test DESTINATION ${HEAPWISE_DATADIR})
configure_file(heapwise.pc.in heapwise.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/heapwise.pc DESTINATION share/pkgconfig)

# ---- packages ----

set(CPACK_PACKAGE_NAME heapwise)
set(CPACK_PACKAGE_VENDOR "Heapwise")
set(CPACK_PACKAGE_CONTACT "${HEAPWISE_MAINTAINER}")
set(CPACK_PACKAGE_HOMEPAGE_URL "${HEAPWISE_HOMEPAGE}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "heap profiler for native programs: by call stack, field and cache line")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/package_files.cmake)
set(CPACK_POST_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/debian_scripts.cmake)
set(CPACK_HEAPWISE_PACKAGING ${CMAKE_CURRENT_LIST_DIR})
# heapwise merge under mpirun is a package of its own: few want MPI.
set(CPACK_COMPONENTS_ALL Unspecified)
if(TARGET heapwise-merge-mpi)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
endif()
set(CPACK_COMPONENT_UNSPECIFIED_DESCRIPTION "Tells where the memory of a program goes, which of it is hot, cold, short-lived
or wasted, which fields and cache lines are used, and whether its allocator
is the problem.")
set(CPACK_COMPONENT_MPI_DESCRIPTION "Lets heapwise merge run on many nodes, by mpirun: each process adds up a part
of the profiles, and the first one writes the sum.")

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON) # of each package's own programs
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_NAME heapwise)
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_SUGGESTS "clang-22, libjemalloc2, libmimalloc2.0, libtcmalloc-minimal4")
set(CPACK_DEBIAN_MPI_PACKAGE_NAME heapwise-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "heapwise (= ${PROJECT_VERSION})")

set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE "Apache-2.0")
set(CPACK_RPM_PACKAGE_GROUP "Development/Tools")
set(CPACK_RPM_MAIN_COMPONENT Unspecified) # is named without "-Unspecified"
set(CPACK_RPM_UNSPECIFIED_PACKAGE_SUMMARY "${CPACK_PACKAGE_DESCRIPTION_SUMMARY}")
set(CPACK_RPM_MPI_PACKAGE_SUMMARY "${CPACK_PACKAGE_DESCRIPTION_SUMMARY}, on many nodes")
set(CPACK_RPM_MPI_PACKAGE_REQUIRES "heapwise = ${PROJECT_VERSION}")
# libheapwise.so is loaded by its path: no package provides or needs it by its name. Plugins of clang need no clang to be installed.
set(CPACK_RPM_SPEC_MORE_DEFINE "%global __provides_exclude_from ^/usr/lib/heapwise/.*$
%global __requires_exclude ^/usr/bin/pkg-config$
%global __requires_exclude_from ^/usr/lib/heapwise/HeapwisePass.*$
%global _build_id_links none")
# Folders that belong to the system's own packages.
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/lib/cmake /usr/share/bash-completion /usr/share/bash-completion/completions
    /usr/share/fish /usr/share/fish/vendor_completions.d /usr/share/man /usr/share/man/man1 /usr/share/pkgconfig /usr/share/zsh
    /usr/share/zsh/site-functions)
include(CPack)
