-- Health of a Gateway in Argo CD, for every controller of Gateway API: Degraded if the Gateway, a listener or a certificate is invalid or the deployment failed;
-- Progressing until it has an address and a ready pod.
local generation = obj.metadata.generation
local programmed = nil
for _, condition in ipairs(obj.status ~= nil and obj.status.conditions or {}) do
  if condition.status ~= "Unknown" then
    if (condition.observedGeneration or generation) ~= generation then
      return { status = "Progressing", message = "The controller has not seen the last change yet" }
    end
    if condition.type == "Accepted" and condition.status == "False" then
      return { status = "Degraded", message = condition.message }
    elseif condition.type == "PartiallyInvalid" and condition.status == "True" then
      return { status = "Degraded", message = condition.message }
    elseif condition.type == "Programmed" then
      programmed = condition
    end
  end
end
for _, listener in ipairs(obj.status ~= nil and obj.status.listeners or {}) do
  for _, condition in ipairs(listener.conditions or {}) do
    if (condition.type == "Accepted" or condition.type == "ResolvedRefs") and condition.status == "False" then
      return { status = "Degraded", message = "Listener " .. listener.name .. ": " .. condition.message }
    end
  end
end
if programmed == nil then
  return { status = "Progressing", message = "Waiting for a controller" }
end
if programmed.status == "True" then
  return { status = "Healthy", message = programmed.message }
end
-- AddressNotAssigned and Pending end by themselves.
local isPending = programmed.reason == "Pending" or programmed.reason == "AddressNotAssigned"
return { status = isPending and "Progressing" or "Degraded", message = programmed.message }
