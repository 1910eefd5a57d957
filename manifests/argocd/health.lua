-- The health of what certroll reconciles, for Argo CD: CertRotationPolicy, TrustDomain, ClusterTrustDomain and
-- ControlPlanePolicy. docs/api.md, "Health", has the meaning of the conditions.
local function answer(status, message)
  return {status = status, message = message}
end

if obj.spec ~= nil and obj.spec.suspend == true then
  return answer("Suspended", "spec.suspend is true")
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
if holds("Stalled") then
  return answer("Degraded", is.Stalled.message)
end
if holds("Reconciling") then
  return answer("Progressing", is.Reconciling.message)
end
if is.Ready == nil or is.Ready.status ~= "True" then
  return answer("Progressing", is.Ready ~= nil and is.Ready.message or "certroll has not looked at it yet")
end
return answer("Healthy", is.Converged ~= nil and is.Converged.message or "")
