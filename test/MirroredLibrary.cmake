# mirrored_library(<module> <variable>): the library certroll_<layer> that has pkg/<layer>/<module>.[ch]; for
# <layer>_<module>, the one of that layer; empty when there is none.
function(mirrored_library module out)
  file(GLOB found ${CMAKE_SOURCE_DIR}/pkg/*/${module}.[ch])
  if(NOT found AND module MATCHES "^([a-z]+)_(.+)$")
    file(GLOB found ${CMAKE_SOURCE_DIR}/pkg/${CMAKE_MATCH_1}/${CMAKE_MATCH_2}.[ch])
  endif()
  set(${out} "" PARENT_SCOPE)
  if(found)
    list(GET found 0 found)
    string(REGEX REPLACE ".*/pkg/([^/]*)/.*" "certroll_\\1" library ${found})
    set(${out} ${library} PARENT_SCOPE)
  endif()
endfunction()
