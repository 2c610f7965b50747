#pragma once

#include "thrust/algorithms.h"
