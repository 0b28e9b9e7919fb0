# SPDX-License-Identifier: MIT
# Record on this machine's GPU with a seed of its own and replay: the models must match this device.
set(file ${FOLDER}/device_capture.h5)
execute_process(COMMAND ${RECORDER} --out ${file} --only convert,scalar,mma,block --seed 20261129
  RESULT_VARIABLE recorded ERROR_VARIABLE error)
if(recorded EQUAL 77)
  message("skipped: no device")
  return()
endif()
if(NOT recorded EQUAL 0)
  message(FATAL_ERROR "the recorder ended with ${recorded}: ${error}")
endif()
execute_process(COMMAND ${DIRECTP} capture check ${file} RESULT_VARIABLE checked)
if(NOT checked EQUAL 0)
  message(FATAL_ERROR "the models differ from this device")
endif()
file(REMOVE ${file})
