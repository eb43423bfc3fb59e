import { ApiObject, App, Chart, type ApiObjectProps } from 'cdk8s'
import { IntOrString, KubeDeployment, KubeService, KubeServiceAccount, type ObjectMeta } from 'cdk8s-plus-29/lib/imports/k8s.js'
import { BRIDGE_PORT, SERVER_PORT } from '#api/bridge.ts'
import { GROUP, MCP_BACKEND_LABEL, safeName, VERSION } from '#api/names.ts'
import { sha256Hex } from '../hash.ts'
import { formatImage } from '../image.ts'
import { mergeParameters } from '../merge.ts'
import { MANAGED_BY } from '../metadata.ts'
import { Overlays, serverOverlays } from '../overlay.ts'
import { failParameters, type DeployObject, type RenderResult } from '../types.ts'
import { describeServerPod, type BridgeImage } from './pod.ts'
import type { ServerInput } from './types.ts'

/** After this time without a new ready pod, the Deployment reports that its rollout is stuck. */
const PROGRESS_SECONDS = 120

/** The objects of an MCP server, in the order to apply: overlays of the GatewayClass first. */
export function renderServer(input: ServerInput): RenderResult {
  const { image: ofBridge } = mergeParameters(input.parameters)
  const image = formatImage(ofBridge, input.settings.image)
  if (typeof image !== 'string') return image
  const { serviceAccount, service, deployment } = synthesize(input, { image, pullPolicy: ofBridge.pullPolicy })
  const overlays = new Overlays(serverOverlays(input.parameters), 'mcp.')
  const objects = [overlays.apply(serviceAccount, 'serviceAccount'), overlays.apply(service, 'service'), overlays.apply(deployment, 'deployment')]
  const { warnings, mistakes } = overlays
  return mistakes.length > 0 ? failParameters(mistakes.join('; '), 'PX1022') : { ok: true, objects, notes: [], warnings }
}

function synthesize({ server, settings }: ServerInput, bridge: BridgeImage): Readonly<Record<'serviceAccount' | 'service' | 'deployment', DeployObject>> {
  const { backend, name } = server
  const selector = { 'app.kubernetes.io/name': name, 'app.kubernetes.io/instance': name, [MCP_BACKEND_LABEL]: safeName(backend.name, sha256Hex) }
  const metadata: ObjectMeta = {
    name,
    namespace: backend.namespace,
    labels: {
      ...selector,
      'app.kubernetes.io/managed-by': MANAGED_BY,
      'app.kubernetes.io/version': settings.version,
    },
    ownerReferences: [{ apiVersion: `${GROUP}/${VERSION}`, kind: 'ProxyBackend', name: backend.name, uid: backend.uid, controller: true }],
  }
  const chart = new Chart(new App(), 'server', { disableResourceNameHashes: true })
  const serviceAccount = new KubeServiceAccount(chart, 'service-account', { metadata, automountServiceAccountToken: false })
  const service = new KubeService(chart, 'service', {
    metadata,
    // No appProtocol of MCP: selectors of other targets would find the Service.
    spec: { selector, ports: [{ name: 'mcp', protocol: 'TCP', port: SERVER_PORT, targetPort: IntOrString.fromNumber(BRIDGE_PORT), appProtocol: 'http' }] },
  })
  const typed = KubeDeployment.manifest({
    metadata,
    spec: { progressDeadlineSeconds: PROGRESS_SECONDS, selector: { matchLabels: selector }, template: describeServerPod(server, selector, bridge) },
  }) as ApiObjectProps
  const deployment = new ApiObject(chart, 'deployment', typed)
  const toObject = (made: { toJson(): unknown }): DeployObject => made.toJson() as DeployObject
  return { serviceAccount: toObject(serviceAccount), service: toObject(service), deployment: toObject(deployment) }
}
