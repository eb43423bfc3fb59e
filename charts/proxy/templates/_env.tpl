{{/* Environment variables of the operator, as a map. */}}
{{- define "proxy.env" -}}
{{- $controller := .Values.controller -}}
{{- $ports := $controller.service.ports -}}
{{- $image := .Values.proxy.image -}}
{{- range $class, $ref := .Values.gatewayClassParametersRefs -}}
{{- range $field := list "name" "namespace" -}}
{{- if not (trim (get $ref $field)) -}}
{{- fail (printf "gatewayClassParametersRefs.%s.%s must be set" $class $field) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $env := dict
  "PROXY_LOG_LEVEL" $controller.logLevel
  "PROXY_XDS_SERVICE_NAME" (include "proxy.fullname" .)
  "PROXY_XDS_SERVICE_PORT" (toString $ports.gwGrpc)
  "PROXY_XDS_MODE" (ternary "tls" "plaintext" ($controller.xds.tls.enabled | default false))
  "PROXY_HEALTH_PORT" (toString $ports.health)
  "PROXY_METRICS_PORT" (toString $ports.metrics)
  "PROXY_DISCOVERY_NAMESPACE_SELECTORS" (toJson (.Values.discoveryNamespaceSelectors | default list))
  "PROXY_GATEWAY_CLASS_PARAMETERS_REFS" (toJson (.Values.gatewayClassParametersRefs | default dict))
  "PROXY_BACKEND_REF_GRANT_MODE" ($controller.backendRefGrantMode | default "route-and-policy")
  "PROXY_ENABLE_INFER_EXT" (toString (.Values.inferenceExtension.enabled | default false))
  "PROXY_IMAGE_REGISTRY" ($image.registry | default .Values.image.registry)
  "PROXY_IMAGE_REPOSITORY" $image.repository
-}}
{{- /* If unset, data planes have the version of the operator. */ -}}
{{- with $image.tag | default .Values.image.tag -}}
{{- $_ := set $env "PROXY_IMAGE_TAG" . -}}
{{- end -}}
{{- $registries := $controller.pluginRegistries | default dict -}}
{{- $ca := $registries.ca | default dict -}}
{{- if and $ca.configMapName $ca.secretName -}}
{{- fail "controller.pluginRegistries.ca: write either configMapName or secretName" -}}
{{- end -}}
{{- if or $ca.configMapName $ca.secretName -}}
{{- $_ := set $env "PROXY_REGISTRY_CA_FILE" "/etc/proxy/plugin-registries/ca.crt" -}}
{{- end -}}
{{- if $registries.credentialsSecretName -}}
{{- $_ := set $env "PROXY_REGISTRY_CONFIG_FILE" "/etc/proxy/plugin-registries/config.json" -}}
{{- end -}}
{{- if dig "limits" "memory" "" (.Values.resources | default dict) -}}
{{- /* Buffers, code and the runtime need memory besides the heap. */ -}}
{{- $_ := set $env "NODE_OPTIONS" "--max-old-space-size-percentage=70" -}}
{{- end -}}
{{- /* extraEnv overrides these; its variables follow. */ -}}
{{- range $name := keys ($controller.extraEnv | default dict) -}}
{{- $_ := unset $env $name -}}
{{- end -}}
{{- $env | toYaml -}}
{{- end -}}

{{/* controller.extraEnv as a map of EnvVars without their names. */}}
{{- define "proxy.extraEnv" -}}
{{- $env := dict -}}
{{- range $name, $value := .Values.controller.extraEnv -}}
{{- if not (kindIs "map" $value) -}}
{{- /* toJson keeps a number as written: not 1e+06. */ -}}
{{- $_ := set $env $name (dict "value" (ternary $value (toJson $value) (kindIs "string" $value))) -}}
{{- else if eq (hasKey $value "value") (hasKey $value "valueFrom") -}}
{{- fail (printf "controller.extraEnv.%s: write either value or valueFrom" $name) -}}
{{- else -}}
{{- $_ := set $env $name $value -}}
{{- end -}}
{{- end -}}
{{- $env | toYaml -}}
{{- end -}}

{{/* Sources of the projected volume with files for registries of plugins; empty: there is no volume. */}}
{{- define "proxy.registryFiles" -}}
{{- $registries := .Values.controller.pluginRegistries | default dict -}}
{{- $ca := $registries.ca | default dict -}}
{{- with $ca.configMapName }}
- configMap:
    name: {{ . | quote }}
    items:
      - key: {{ $ca.key | default "ca.crt" | quote }}
        path: ca.crt
{{- end }}
{{- with $ca.secretName }}
- secret:
    name: {{ . | quote }}
    items:
      - key: {{ $ca.key | default "ca.crt" | quote }}
        path: ca.crt
{{- end }}
{{- with $registries.credentialsSecretName }}
- secret:
    name: {{ . | quote }}
    items:
      - key: .dockerconfigjson
        path: config.json
{{- end }}
{{- end -}}
