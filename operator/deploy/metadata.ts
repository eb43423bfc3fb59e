import { CONTROLLER_NAME, GATEWAY_GROUP, safeName } from '#api/names.ts'
import { scrapeAnnotations } from './container.ts'
import { sha256Hex } from './hash.ts'
import type { DeployGateway, DeployInput, OwnerReference } from './types.ts'

type Labels = Readonly<Record<string, string>>

export const GATEWAY_NAME_LABEL = `${GATEWAY_GROUP}/gateway-name`
const CLASS_NAME_LABEL = `${GATEWAY_GROUP}/gateway-class-name`
/** Value of label app.kubernetes.io/managed-by. */
export const MANAGED_BY = CONTROLLER_NAME.slice(CONTROLLER_NAME.indexOf('/') + 1)

/** Name of every object of a Gateway, and of the Gateway towards the config stream. */
export const objectName = (gateway: DeployGateway): string => safeName(gateway.metadata.name, sha256Hex)
export const xdsCaName = (gateway: DeployGateway): string => `${objectName(gateway)}-xds-ca`

/** Labels and annotations of the objects of one Gateway (operator.md §2.2). */
export interface DeployMetadata {
  readonly name: string
  readonly namespace: string
  /** Labels by which Service, Deployment and PodDisruptionBudget select pods. */
  readonly selector: Labels
  readonly labels: Labels
  readonly podLabels: Labels
  readonly secretLabels: Labels
  readonly annotations: Labels
  readonly podAnnotations: Labels
  readonly ownerReferences: readonly OwnerReference[]
}

/** Keys of Gateway API's own group belong to us. */
const ofUser = (map: Labels = {}): Labels => Object.fromEntries(Object.entries(map).filter(([key]) => !key.startsWith(`${GATEWAY_GROUP}/`)))

export function describeMetadata({ gateway, gatewayClass, settings }: DeployInput): DeployMetadata {
  const { infrastructure } = gateway.spec
  const name = objectName(gateway)
  const className = safeName(gatewayClass.metadata.name, sha256Hex)
  const userLabels = ofUser(infrastructure?.labels)
  const annotations = ofUser(infrastructure?.annotations)
  const selector = { 'app.kubernetes.io/name': name, 'app.kubernetes.io/instance': name, [GATEWAY_NAME_LABEL]: name }
  const classLabel = { [CLASS_NAME_LABEL]: className }
  return {
    name,
    namespace: gateway.metadata.namespace,
    selector,
    labels: { ...userLabels, ...selector, ...classLabel, 'app.kubernetes.io/managed-by': MANAGED_BY, 'app.kubernetes.io/version': settings.version },
    podLabels: { ...userLabels, ...selector, ...classLabel },
    secretLabels: { [GATEWAY_NAME_LABEL]: name, ...classLabel },
    annotations,
    podAnnotations: { ...scrapeAnnotations, ...annotations },
    ownerReferences: [{ apiVersion: `${GATEWAY_GROUP}/v1`, kind: 'Gateway', name: gateway.metadata.name, uid: gateway.metadata.uid ?? '', controller: true }],
  }
}
