// The cases of ../README.md, and how two values of a case differ.
#pragma once

#include <string>
#include <vector>

#include "echo/echo_types.h"

extern const std::string UNICODE;
std::string allBytes();
std::vector<echo::Everything> cases();
// What differs; "" if nothing does.
std::string difference(echo::Everything got, echo::Everything want);
