# What Debian wants in a package beside what is installed elsewhere, too: copyright, a changelog, manuals compressed. CPack runs this
# before it makes packages.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
find_program(GZIP gzip)
if(NOT GZIP)
  message(FATAL_ERROR "gzip is needed for Debian's packages")
endif()
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # SOURCE_DATE_EPOCH is used when it is set
file(GLOB roots LIST_DIRECTORIES TRUE "${CPACK_TEMPORARY_DIRECTORY}/*")
foreach(root IN LISTS roots)
  if(NOT IS_DIRECTORY "${root}${CPACK_PACKAGING_INSTALL_PREFIX}")
    continue()
  endif()
  get_filename_component(component "${root}" NAME)
  string(TOUPPER "${component}" component)
  set(package "${CPACK_DEBIAN_${component}_PACKAGE_NAME}")
  set(folder "${root}${CPACK_PACKAGING_INSTALL_PREFIX}/share/doc/${package}")
  file(WRITE "${folder}/copyright" "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Heapwise

Files: *
Copyright: 2026 the authors of Heapwise
License: Apache-2.0
 On Debian systems, the full text of this license is in /usr/share/common-licenses/Apache-2.0.
")
  file(WRITE "${folder}/changelog" "heapwise (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * Version ${CPACK_PACKAGE_VERSION}, packaged as it was built.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
  file(REMOVE "${folder}/LICENSE")
  file(GLOB_RECURSE compressible "${folder}/changelog" "${root}${CPACK_PACKAGING_INSTALL_PREFIX}/share/man/*.1")
  execute_process(COMMAND "${GZIP}" -9nf ${compressible} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
