{{/* Settings of the operator by environment, as a map; controller.extraEnv wins. */}}
{{- define "proxy.env" -}}
{{- $controller := .Values.controller -}}
{{- $ports := $controller.service.ports -}}
{{- $image := .Values.proxy.image -}}
{{- range $class, $ref := .Values.gatewayClassParametersRefs -}}
{{- if or (not $ref.name) (not $ref.namespace) -}}
{{- fail (printf "gatewayClassParametersRefs.%s: name and namespace of the ProxyParameters are required" $class) -}}
{{- end -}}
{{- end -}}
{{- $env := dict
  "PROXY_LOG_LEVEL" $controller.logLevel
  "PROXY_XDS_SERVICE_NAME" (include "proxy.fullname" .)
  "PROXY_XDS_SERVICE_PORT" (toString $ports.gwGrpc)
  "PROXY_XDS_MODE" (ternary "tls" "plaintext" $controller.xds.tls.enabled)
  "PROXY_HEALTH_PORT" (toString $ports.health)
  "PROXY_METRICS_PORT" (toString $ports.metrics)
  "PROXY_DISCOVERY_NAMESPACE_SELECTORS" (toJson .Values.discoveryNamespaceSelectors)
  "PROXY_GATEWAY_CLASS_PARAMETERS_REFS" (toJson .Values.gatewayClassParametersRefs)
  "PROXY_ENABLE_INFER_EXT" (toString .Values.inferenceExtension.enabled)
  "PROXY_IMAGE_REGISTRY" ($image.registry | default .Values.image.registry)
  "PROXY_IMAGE_REPOSITORY" $image.repository
  "PROXY_IMAGE_TAG" (include "proxy.tag" (dict "own" $image.tag "root" .))
-}}
{{- if dig "limits" "memory" "" .Values.resources -}}
{{- /* Beside the heap there are buffers, code and the runtime itself. */ -}}
{{- $_ := set $env "NODE_OPTIONS" "--max-old-space-size-percentage=70" -}}
{{- end -}}
{{- mergeOverwrite $env $controller.extraEnv | toYaml -}}
{{- end -}}
