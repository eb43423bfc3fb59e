import { withCode, type MessageCode } from '#api/messages/code.ts'
import type { ConditionReason } from '#api/names.ts'
import type { ProxyParametersSpec } from '#gen/v1alpha1/types.ts'

/** The fields that are read of a Gateway. */
export interface DeployGateway {
  readonly metadata: { readonly name: string; readonly namespace: string; readonly uid?: string }
  readonly spec: {
    readonly listeners: readonly DeployListener[]
    readonly addresses?: readonly { readonly type?: string; readonly value?: string }[]
    readonly infrastructure?: {
      readonly labels?: Readonly<Record<string, string>>
      readonly annotations?: Readonly<Record<string, string>>
      readonly parametersRef?: { readonly group: string; readonly kind: string; readonly name: string }
    }
  }
}

export interface DeployListener {
  readonly name: string
  /** 0 or absent, in ListenerSets of older versions only: the default port of the protocol. */
  readonly port?: number
  readonly protocol: string
}

export interface DeployGatewayClass {
  readonly metadata: { readonly name: string }
  readonly spec: { readonly parametersRef?: { readonly group: string; readonly kind: string; readonly name: string; readonly namespace?: string } }
}

export type KeyName = 'session-key' | 'admin-token'

/** `data` of a Secret: base64. */
export interface SecretData {
  readonly data?: Readonly<Record<string, string>>
}

/** Settings of the operator that reach the data plane (operator.md §7.2). */
export interface DeploySettings {
  readonly image: { readonly registry: string; readonly repository: string; readonly tag: string }
  /** Value of label app.kubernetes.io/version. */
  readonly version: string
  /** Where the config stream is served. */
  readonly xds: { readonly host: string; readonly port: number; readonly isTls: boolean }
  /** Trust domain that the mesh's own ConfigMap names; it is used where the parameters name none. */
  readonly meshTrustDomain?: string
}

/** ProxyParameters of both levels, as `resolveParameters` finds them. */
export interface LevelParameters {
  readonly class?: ProxyParametersSpec
  readonly gateway?: ProxyParametersSpec
}

/** Everything that the objects of one Gateway are made from. */
export interface DeployInput {
  readonly gateway: DeployGateway
  readonly gatewayClass: DeployGatewayClass
  /** ListenerSets that are attached and allowed. */
  readonly listenerSets: readonly { readonly spec: { readonly listeners: readonly DeployListener[] } }[]
  readonly parameters: LevelParameters
  readonly settings: DeploySettings
  /** The live Secrets of `managedKeys`, those that there are. */
  readonly keySecrets: Readonly<Partial<Record<KeyName, SecretData>>>
  /** Secret `proxy-xds-cert` of the install namespace; read where `settings.xds.isTls`. */
  readonly xdsSecret?: SecretData
  /** Returns 64 hex digits of 32 random bytes. Called for each key that there is not yet. */
  readonly generateKey: () => string
}

/** An object to apply: JSON, without null and undefined. */
export interface DeployObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
    readonly ownerReferences?: readonly OwnerReference[]
  }
  readonly [field: string]: unknown
}

export interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller?: boolean
}

/** Why nothing is deployed, for the Gateway's condition `condition`=False. Existing objects keep running (operator.md §3.1). */
export interface DeployFailure {
  readonly ok: false
  readonly condition: 'Accepted' | 'Programmed'
  readonly reason: ConditionReason
  readonly message: string
}

interface Rendered {
  readonly ok: true
  /** In the order to apply. */
  readonly objects: readonly DeployObject[]
  /** For the operator's log: ports that are not served. The status of their listener reports them, too. */
  readonly notes: readonly string[]
  /** For the status of the Gateway: ignored fields of overlays. */
  readonly warnings: readonly string[]
}

export type RenderResult = Rendered | DeployFailure

export const failParameters = (message: string, code: MessageCode): DeployFailure => ({
  ok: false,
  condition: 'Accepted',
  reason: 'InvalidParameters',
  message: withCode(message, code),
})
