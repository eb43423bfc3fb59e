-- Health of a ProxyPolicy in Argo CD: Degraded if a part of it is invalid, because that part fails closed; Progressing until it is attached to its targets.
local health = { status = "Progressing", message = "The operator has not written a status yet" }
local isAttached = true
for _, ancestor in ipairs(obj.status ~= nil and obj.status.ancestors or {}) do
  if ancestor.controllerName == "proxy.dev/proxy" then
    for _, condition in ipairs(ancestor.conditions or {}) do
      if (condition.observedGeneration or obj.metadata.generation) ~= obj.metadata.generation then
        return { status = "Progressing", message = "The operator has not seen the last change yet" }
      end
      if condition.type == "Accepted" then
        if condition.status ~= "True" or condition.reason == "PartiallyValid" then
          return { status = "Degraded", message = condition.message }
        end
        if isAttached then
          health = { status = "Healthy", message = condition.message }
        end
      elseif condition.type == "Attached" and condition.status ~= "True" then
        isAttached = false
        health = { status = "Progressing", message = condition.message }
      end
    end
  end
end
return health
