{{/* Name of the objects. */}}
{{- define "proxy.fullname" -}}
{{- $name := .Release.Name -}}
{{- $suffix := .Values.nameOverride | default .Chart.Name -}}
{{- if .Values.fullnameOverride -}}
{{- $name = .Values.fullnameOverride -}}
{{- else if not (contains $suffix .Release.Name) -}}
{{- $name = printf "%s-%s" .Release.Name $suffix -}}
{{- end -}}
{{- $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Name of cluster-wide objects; contains the namespace. */}}
{{- define "proxy.clusterName" -}}
{{- printf "%s-%s" (include "proxy.fullname" .) .Release.Namespace -}}
{{- end -}}

{{- define "proxy.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "proxy.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "proxy.selectorLabels" -}}
proxy: proxy
app.kubernetes.io/name: {{ .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: controller
{{- end -}}

{{/* Selector labels are merged last, so that commonLabels cannot change them. */}}
{{- define "proxy.labels" -}}
{{- $own := dict "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_") "app.kubernetes.io/version" .Chart.AppVersion "app.kubernetes.io/managed-by" .Release.Service -}}
{{- $selector := include "proxy.selectorLabels" . | fromYaml -}}
{{- mergeOverwrite (dict) $own (.Values.commonLabels | default dict) $selector | toYaml -}}
{{- end -}}

{{/* "true" if several replicas are certain: by replicaCount, or by the minimum of the autoscaler. */}}
{{- define "proxy.isReplicated" -}}
{{- $autoscaler := .Values.controller.horizontalPodAutoscaler -}}
{{- if gt (int (ternary (dig "minReplicas" 1 ($autoscaler | default dict)) .Values.controller.replicaCount (not (empty $autoscaler)))) 1 }}true{{ end }}
{{- end -}}

{{/* Tag of the operator's image, as written: of the controller, of both images, or of the release. */}}
{{- define "proxy.controllerTag" -}}
{{- .Values.controller.image.tag | default .Values.image.tag | default (printf "v%s" .Chart.AppVersion) -}}
{{- end -}}

{{- define "proxy.controllerImage" -}}
{{- $image := .Values.controller.image -}}
{{- $registry := $image.registry | default .Values.image.registry -}}
{{- with $registry }}{{ . }}/{{ end }}{{ $image.repository }}:{{ include "proxy.controllerTag" . }}
{{- end -}}
