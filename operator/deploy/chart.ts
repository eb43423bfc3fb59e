import { ApiObject, App, Chart, JsonPatch, type ApiObjectProps } from 'cdk8s'
import { IntOrString, KubeConfigMap, KubeDeployment, KubeSecret, KubeService, KubeServiceAccount, type ObjectMeta } from 'cdk8s-plus-29/lib/imports/k8s.js'
import type { MergedParameters } from './merge.ts'
import type { DeployMetadata } from './metadata.ts'
import { describePod, type PodReferences } from './pod.ts'
import type { DeployObject, DeploySettings } from './types.ts'
import { CA_ENTRY } from './xds-ca.ts'

/** Input of the objects of a Gateway, with all defaults resolved. */
export interface Parts {
  readonly metadata: DeployMetadata
  readonly parameters: MergedParameters
  readonly settings: DeploySettings
  readonly pod: PodReferences
  readonly ports: readonly number[]
  /** Asked of the load balancer. */
  readonly ip?: string
  /** Content of the config file. */
  readonly config: string
  /** PEM; present where `pod.xdsCa` is. */
  readonly ca?: string
}

/** The objects before overlays, by role. Synthesis is in memory and takes less than a millisecond. */
export interface Synthesized {
  readonly serviceAccount: DeployObject
  readonly configMap: DeployObject
  readonly xdsCa?: DeployObject
  readonly service: DeployObject
  readonly deployment: DeployObject
  readonly secrets: readonly DeployObject[]
}

export function synthesize(parts: Parts): Synthesized {
  const { metadata } = parts
  const chart = new Chart(new App(), 'gateway', { disableResourceNameHashes: true })
  const { name, namespace, labels, ownerReferences } = metadata
  const annotated = Object.keys(metadata.annotations).length > 0 ? { annotations: metadata.annotations } : {}
  const common: ObjectMeta = { name, namespace, labels, ownerReferences: [...ownerReferences], ...annotated }

  const serviceAccount = new KubeServiceAccount(chart, 'service-account', { metadata: common, automountServiceAccountToken: false })
  const configMap = new KubeConfigMap(chart, 'config', { metadata: common, data: { 'config.yaml': parts.config } })
  const service = new KubeService(chart, 'service', { metadata: common, spec: describeService(parts) })
  const typed = KubeDeployment.manifest({
    metadata: common,
    spec: { selector: { matchLabels: metadata.selector }, template: describePod(metadata, parts.parameters, parts.settings, parts.pod) },
  }) as ApiObjectProps
  const deployment = new ApiObject(chart, 'deployment', typed)
  addUserFields(deployment, parts.parameters)

  const own = { namespace, ownerReferences: [...ownerReferences] }
  const { xdsCa, keys } = parts.pod
  const ca =
    xdsCa === undefined ? undefined : new KubeConfigMap(chart, 'xds-ca', { metadata: { ...own, name: xdsCa, labels }, data: { [CA_ENTRY]: parts.ca ?? '' } })
  const secrets = keys.map(
    (key) =>
      new KubeSecret(chart, key.name, {
        metadata: { ...own, name: key.secret, labels: metadata.secretLabels },
        type: 'Opaque',
        data: { [key.entry]: Buffer.from(key.value).toString('base64') },
      }),
  )
  const toObject = (made: { toJson(): unknown }): DeployObject => made.toJson() as DeployObject
  return {
    serviceAccount: toObject(serviceAccount),
    configMap: toObject(configMap),
    ...(ca ? { xdsCa: toObject(ca) } : {}),
    service: toObject(service),
    deployment: toObject(deployment),
    secrets: secrets.map(toObject),
  }
}

function describeService({ metadata, ports, ip }: Parts): ConstructorParameters<typeof KubeService>[2] extends { spec?: infer S } | undefined ? S : never {
  return {
    type: 'LoadBalancer',
    selector: metadata.selector,
    ...(ip === undefined ? {} : { loadBalancerIp: ip }),
    ports: ports.map((port) => ({ name: `listener-${port}`, protocol: 'TCP', port, targetPort: IntOrString.fromNumber(port) })),
  }
}

/** As the user wrote them: the API server may know fields that the typed constructs of cdk8s-plus-29 (Kubernetes 1.29) would leave out. */
function addUserFields(deployment: ApiObject, { env, resources }: MergedParameters): void {
  const container = '/spec/template/spec/containers/0'
  for (const variable of env) deployment.addJsonPatch(JsonPatch.add(`${container}/env/-`, variable))
  if (Object.keys(resources).length > 0) deployment.addJsonPatch(JsonPatch.add(`${container}/resources`, resources))
}
