#pragma once

#include <string_view>

#include "models/compute/server_spec.hpp"
#include "models/failures/failure_spec.hpp"
#include "models/storage/store_spec.hpp"
#include "models/training/job_spec.hpp"
#include "topologies/fabric_spec.hpp"

/// The catalog's word for each struct that can be a part.
namespace trainyard::scenarios {

template <class T>
inline constexpr std::string_view part_kind = "";  // no part
template <>
inline constexpr std::string_view part_kind<models::GpuSpec> = "gpu";
template <>
inline constexpr std::string_view part_kind<models::GpuCalibration> = "calibration";
template <>
inline constexpr std::string_view part_kind<models::NicSpec> = "nic";
template <>
inline constexpr std::string_view part_kind<models::ServerSpec> = "server";
template <>
inline constexpr std::string_view part_kind<models::TransformerSpec> = "model";
template <>
inline constexpr std::string_view part_kind<models::SoftwareSpec> = "software";
template <>
inline constexpr std::string_view part_kind<topologies::SwitchSpec> = "switch";
template <>
inline constexpr std::string_view part_kind<models::StoreSpec> = "store";
template <>
inline constexpr std::string_view part_kind<models::FailureProfileSpec> = "failures";

/// Parts that are entries of a map: each entry may name one.
template <class T>
inline constexpr bool is_part_in_map = false;
template <>
inline constexpr bool is_part_in_map<models::StoreSpec> = true;

}  // namespace trainyard::scenarios
