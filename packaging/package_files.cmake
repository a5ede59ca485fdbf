# What packages have beside what is installed elsewhere, too: manuals compressed; Debian's also a copyright, a changelog, and what
# lintian shall not say. CPack runs this before it makes packages.
if(NOT CPACK_GENERATOR MATCHES "^(DEB|RPM)$")
  return()
endif()
find_program(GZIP gzip)
if(NOT GZIP)
  message(FATAL_ERROR "gzip is needed for packages")
endif()
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # SOURCE_DATE_EPOCH is used when it is set
file(GLOB roots LIST_DIRECTORIES TRUE "${CPACK_TEMPORARY_DIRECTORY}/*")
foreach(root IN LISTS roots)
  set(prefix "${root}${CPACK_PACKAGING_INSTALL_PREFIX}")
  if(NOT IS_DIRECTORY "${prefix}")
    continue()
  endif()
  file(GLOB_RECURSE compressible "${prefix}/share/man/*.1")
  if(CPACK_GENERATOR STREQUAL "DEB")
    get_filename_component(component "${root}" NAME)
    string(TOUPPER "${component}" component)
    set(package "${CPACK_DEBIAN_${component}_PACKAGE_NAME}")
    set(folder "${prefix}/share/doc/${package}")
    file(WRITE "${folder}/copyright" "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Heapwise
Source: ${CPACK_PACKAGE_HOMEPAGE_URL}

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
    list(APPEND compressible "${folder}/changelog")
    set(overrides "${CPACK_HEAPWISE_PACKAGING}/${package}.lintian-overrides")
    if(EXISTS "${overrides}")
      configure_file("${overrides}" "${prefix}/share/lintian/overrides/${package}" COPYONLY)
    endif()
  endif()
  if(compressible)
    execute_process(COMMAND "${GZIP}" -9nf ${compressible} COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()
