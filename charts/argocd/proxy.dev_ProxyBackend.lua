-- Health of a ProxyBackend in Argo CD.
for _, condition in ipairs(obj.status ~= nil and obj.status.conditions or {}) do
  if condition.type == "Accepted" then
    if (condition.observedGeneration or obj.metadata.generation) ~= obj.metadata.generation then
      return { status = "Progressing", message = "The operator has not seen the last change yet" }
    end
    return { status = condition.status == "True" and "Healthy" or "Degraded", message = condition.message }
  end
end
return { status = "Progressing", message = "The operator has not written a status yet" }
