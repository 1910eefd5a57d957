-- The health of what certroll reconciles, for Argo CD: CertRotationPolicy, TrustDomain, ClusterTrustDomain and
-- ControlPlanePolicy. docs/api.md, "Health", has the meaning of the conditions. Never "Suspended": a sync with waves
-- waits for Healthy or Degraded.
local function answer(status, message)
  return {status = status, message = message}
end

local status = obj.status
if status == nil or status.conditions == nil or status.observedGeneration ~= obj.metadata.generation then
  return answer("Progressing", "certroll has not looked at it yet")
end
local is = {}
for _, condition in ipairs(status.conditions) do
  is[condition.type] = condition
end
local function holds(name)
  return is[name] ~= nil and is[name].status == "True"
end
local function words(name)
  return is[name] ~= nil and is[name].message or ""
end

local is_control_plane = obj.kind == "ControlPlanePolicy" -- it has neither Stalled nor Reconciling
if holds("Stalled") then
  return answer("Degraded", words("Stalled"))
end
if is_control_plane and (holds("Degraded") or holds("Blocked")) then
  return answer("Degraded", words(holds("Degraded") and "Degraded" or "Blocked"))
end
local spec = obj.spec or {}
if spec.suspend == true then
  return answer("Healthy", "spec.suspend is true")
end
if holds("Reconciling") then
  return answer("Progressing", words("Reconciling"))
end
if not holds("Ready") then
  return answer("Progressing", words("Ready"))
end
if is_control_plane and (holds("Rotating") or (not holds("Converged") and spec.mode == "Enforce")) then
  return answer("Progressing", words("Converged"))
end
return answer("Healthy", words("Converged"))
