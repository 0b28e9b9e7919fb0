# SPDX-License-Identifier: MIT
# Find nvcc and enable its languages, in the scope of the whole project because the directp command
# links device code too. Sets DIRECTP_HAVE_CUDA.
include(CheckLanguage)
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX} AND EXISTS /usr/local/cuda/bin/nvcc)
  set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
endif()
check_language(CUDA)
set(DIRECTP_HAVE_CUDA OFF)
if(CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_ARCHITECTURES OFF) # the targets are named in device/CMakeLists.txt
  enable_language(CXX)
  enable_language(CUDA)
  set(CMAKE_CUDA_STANDARD 17)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(DIRECTP_HAVE_CUDA ON)
else()
  message(STATUS "nvcc not found: the CUDA part is left out")
endif()
