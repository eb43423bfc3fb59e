/** The fields of core kinds that the operator reads. */

export interface ServicePort {
  readonly name?: string
  readonly port: number
  readonly protocol?: string
  readonly appProtocol?: string
  /** A number, or the name of a container port. */
  readonly targetPort?: number | string
}

export interface ServiceSpec {
  readonly type?: string
  readonly ports?: readonly ServicePort[]
  readonly externalName?: string
  readonly trafficDistribution?: string
  readonly internalTrafficPolicy?: string
  readonly sessionAffinity?: string
}

interface EndpointSliceEndpoint {
  readonly addresses: readonly string[]
  readonly conditions?: { readonly ready?: boolean; readonly serving?: boolean; readonly terminating?: boolean }
  readonly nodeName?: string
  readonly zone?: string
}

export interface EndpointSliceFields {
  readonly addressType: string
  readonly endpoints?: readonly EndpointSliceEndpoint[] | null
  readonly ports?: readonly { readonly name?: string; readonly port?: number; readonly protocol?: string }[] | null
}

export interface PodSpec {
  readonly nodeName?: string
}

export interface PodStatus {
  readonly podIP?: string
  readonly conditions?: readonly { readonly type: string; readonly status: string }[]
}

export interface KeyData {
  /** Secret: base64; ConfigMap: text. */
  readonly data?: Readonly<Record<string, string>>
}

export const SERVICE_NAME_LABEL = 'kubernetes.io/service-name'
export const NAMESPACE_NAME_LABEL = 'kubernetes.io/metadata.name'
