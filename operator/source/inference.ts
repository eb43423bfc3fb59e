/** The fields of InferencePools (Gateway API Inference Extension v1) that the operator reads, as an API server returns them. */

export const INFERENCE_GROUP = 'inference.networking.k8s.io'

export interface EndpointPickerRef {
  readonly group: string
  readonly kind: string
  readonly name: string
  /** Of the Service; required for one. */
  readonly port?: { readonly number: number }
  readonly failureMode: 'FailOpen' | 'FailClose'
}

export interface InferencePoolSpec {
  /** Pods of the pool's own namespace. */
  readonly selector: { readonly matchLabels: Readonly<Record<string, string>> }
  /** Each is an endpoint of its own on every pod. */
  readonly targetPorts: readonly { readonly number: number }[]
  readonly appProtocol: 'http' | 'kubernetes.io/h2c'
  readonly endpointPickerRef?: EndpointPickerRef
}
