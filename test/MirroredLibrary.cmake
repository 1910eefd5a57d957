# mirrored_library(<module> <variable>): the library certroll_<layer> that has pkg/<layer>/<module>.[ch], each of them where
# several layers have one of that name; for <layer>_<module>, the one of that layer; empty when there is none.
function(mirrored_library module out)
  file(GLOB found ${CMAKE_SOURCE_DIR}/pkg/*/${module}.[ch] ${CMAKE_SOURCE_DIR}/pkg/*/*/${module}.[ch])
  if(NOT found AND module MATCHES "^([a-z]+)_(.+)$")
    file(GLOB found ${CMAKE_SOURCE_DIR}/pkg/${CMAKE_MATCH_1}/${CMAKE_MATCH_2}.[ch])
  endif()
  list(TRANSFORM found REPLACE ".*/pkg/(.*)/[^/]*" "certroll_\\1")
  list(TRANSFORM found REPLACE "/" "_")
  list(REMOVE_DUPLICATES found)
  set(${out} "${found}" PARENT_SCOPE)
endfunction()
