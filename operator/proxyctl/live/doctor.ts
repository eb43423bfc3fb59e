import { X509Certificate } from 'node:crypto'
import { CONTROLLER_NAME, GATEWAY_GROUP, GROUP } from '#api/names.ts'
import { connect, type ApiError, type KubeConnection } from '../../kube/connection.ts'
import { UsageError } from '../output.ts'
import type { Command, Invocation } from '../types.ts'
import { readComponents, type Component } from '../version.ts'
import packageJson from '../../../package.json' with { type: 'json' }
import { explainUnreachable, kubeconfigOf } from './admin.ts'
import { listObjects, ownClasses } from './gateways.ts'
import { alignRows, describeCluster } from './status.ts'

/** Result of one check; `fix` is what to do. */
interface Check {
  readonly severity: 'error' | 'warning' | 'ok'
  readonly check: string
  readonly message: string
  readonly fix?: string
}

const ok = (check: string, message: string): Check => ({ severity: 'ok', check, message })
const warning = (check: string, message: string, fix: string): Check => ({ severity: 'warning', check, message, fix })
const error = (check: string, message: string, fix: string): Check => ({ severity: 'error', check, message, fix })

/** Oldest supported minor version of Kubernetes 1. */
const OLDEST_KUBERNETES = 29
/** Minor version of Gateway API 1 whose CRDs are supported. */
const GATEWAY_API = 6
const CERTIFICATE_WARNING_DAYS = 21
const DAY_MS = 86_400_000
/** Further lines of one check are counted, not listed. */
const LISTED = 5

/** Checks cluster, CRDs, versions, certificates, data planes and statuses, in the order in which they depend on each other. Returns 1 if a check failed. */
export const runDoctor: Command = async (invocation) => {
  const { args, output } = invocation
  if (args.length > 0) throw new UsageError('doctor takes no arguments')
  const checks = await output.wait('checking the cluster', examine(invocation))
  const first = checks.find(({ severity }) => severity === 'error') ?? checks.find(({ severity }) => severity === 'warning')
  output.print({ checks, ...(first?.fix !== undefined && { first: first.fix }) }, () => {
    const lines = alignRows(
      output,
      checks.map(({ severity, check, message }) => [severity, check, message]),
    )
    return [...lines, ...(first?.fix === undefined ? [] : ['', `first: ${first.fix}`])]
  })
  return checks.some(({ severity }) => severity === 'error') ? 1 : 0
}

async function examine(invocation: Invocation): Promise<Check[]> {
  const kubeconfig = kubeconfigOf(invocation)
  const connection = connect({ kubeconfig, userAgent: 'proxyctl' })
  try {
    const found = [await checkKubernetes(connection), await checkGatewayApi(connection), await checkOwnKinds(connection)]
    // Without CRDs nothing else can exist.
    if (found.some(({ severity }) => severity === 'error')) return found
    const { operators, dataplanes } = await readComponents(connection)
    const classes = ownClasses(await listObjects(connection, 'GatewayClass'))
    return [
      ...found,
      ...checkOperators(operators),
      checkClasses(classes),
      ...checkDataplanes(dataplanes, operators),
      ...(await checkCertificates(connection, classes, invocation.options.namespace)),
      ...(await checkStatuses(invocation)),
    ]
  } catch (failure) {
    throw explainUnreachable(failure, kubeconfig)
  } finally {
    connection.close()
  }
}

/** The answer, or undefined if there is none at this path or the user may not read it. */
function read<T extends object>(connection: KubeConnection, path: string): Promise<T | undefined> {
  return connection.request<T>('GET', path).catch((failure: ApiError) => {
    if (failure.status === 404 || failure.status === 403) return undefined
    throw failure
  })
}

async function checkKubernetes(connection: KubeConnection): Promise<Check> {
  const { major = '', minor = '', gitVersion = '' } = (await read<{ major?: string; minor?: string; gitVersion?: string }>(connection, '/version')) ?? {}
  const isOld = major === '1' && Number.parseInt(minor, 10) < OLDEST_KUBERNETES
  return isOld
    ? error('Kubernetes', `${gitVersion} is older than 1.${OLDEST_KUBERNETES}`, `upgrade the cluster to Kubernetes 1.${OLDEST_KUBERNETES} or newer`)
    : ok('Kubernetes', gitVersion === '' ? 'reachable' : gitVersion)
}

interface Definition {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> }
}

const definition = (connection: KubeConnection, name: string): Promise<Definition | undefined> =>
  read<Definition>(connection, `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}`)

async function checkGatewayApi(connection: KubeConnection): Promise<Check> {
  const name = 'Gateway API'
  if ((await read(connection, `/apis/${GATEWAY_GROUP}`)) === undefined)
    return error(name, 'its CRDs are not installed', 'install the CRDs of Gateway API: https://gateway-api.sigs.k8s.io/guides/#installing-gateway-api')
  const annotations = (await definition(connection, `gateways.${GATEWAY_GROUP}`))?.metadata.annotations ?? {}
  const version = annotations[`${GATEWAY_GROUP}/bundle-version`]
  const channel = annotations[`${GATEWAY_GROUP}/channel`] ?? 'standard'
  if (version === undefined) return ok(name, 'installed')
  const minor = Number(/^v1\.(\d+)/.exec(version)?.[1] ?? NaN)
  const text = `${version}, ${channel} channel`
  return minor < GATEWAY_API
    ? warning(name, `${text}: older than v1.${GATEWAY_API}, which this version is tested with`, `upgrade the CRDs of Gateway API to v1.${GATEWAY_API}`)
    : ok(name, text)
}

const OWN_KINDS = ['ProxyBackend', 'ProxyParameters', 'ProxyPolicy'] as const

async function checkOwnKinds(connection: KubeConnection): Promise<Check> {
  const served = (await read<{ resources?: { kind: string }[] }>(connection, `/apis/${GROUP}/v1alpha1`))?.resources ?? []
  const missing = OWN_KINDS.filter((kind) => !served.some((resource) => resource.kind === kind))
  return missing.length === 0
    ? ok('CRDs', `${OWN_KINDS.join(', ')} (${GROUP}/v1alpha1)`)
    : error('CRDs', `not installed: ${missing.join(', ')}`, 'install the chart proxy-crds: helm upgrade --install proxy-crds charts/proxy-crds')
}

function checkOperators(operators: readonly Component[]): Check[] {
  if (operators.length === 0)
    return [
      error(
        'operator',
        'no Deployment of the operator',
        'install the chart proxy: helm upgrade --install proxy charts/proxy -n proxy-system --create-namespace',
      ),
    ]
  return operators.map(({ namespace, name, version, ready, wanted }) => {
    const object = `${namespace}/${name}`
    const text = `${object}, version ${version}`
    if (ready === 0 && wanted > 0)
      return error(
        'operator',
        `${text}: no pod is ready`,
        `kubectl -n ${namespace} describe deployment ${name}, and kubectl -n ${namespace} logs deployment/${name}`,
      )
    return version === packageJson.version
      ? ok('operator', text)
      : warning('operator', `${text}; proxyctl is ${packageJson.version}`, `use proxyctl ${version}, or upgrade the chart proxy (docs/guide/upgrade.md)`)
  })
}

function checkClasses(classes: readonly string[]): Check {
  return classes.length === 0
    ? error('GatewayClass', `none has controllerName ${CONTROLLER_NAME}`, 'the operator creates GatewayClass proxy: read its log')
    : ok('GatewayClass', classes.join(', '))
}

/** Data planes are replaced when the operator is upgraded; another version means that a rollout is under way or stuck, or that ProxyParameters name an image. */
function checkDataplanes(dataplanes: readonly Component[], operators: readonly Component[]): Check[] {
  if (dataplanes.length === 0) return [warning('data planes', 'none', 'create a Gateway of GatewayClass proxy')]
  const expected = new Set(operators.map(({ version }) => version))
  const others = dataplanes.filter(({ version }) => !expected.has(version))
  return [
    ...(others.length === 0
      ? [ok('data planes', `${dataplanes.length}, all of version ${[...expected].join(', ')}`)]
      : others
          .slice(0, LISTED)
          .map(({ namespace, name, version }) =>
            warning(
              'data planes',
              `${namespace}/${name} has version ${version}, the operator ${[...expected].join(', ')}`,
              `if no rollout is under way (kubectl -n ${namespace} rollout status deployment/${name}), remove image from the ProxyParameters of the Gateway`,
            ),
          )),
    ...countRest('data planes', others.length),
  ]
}

const countRest = (check: string, count: number): Check[] => (count > LISTED ? [warning(check, `and ${count - LISTED} more`, 'correct those above first')] : [])

/** Certificates of listeners that the user may read: expired, or near their end. */
async function checkCertificates(connection: KubeConnection, classes: readonly string[], only: string | undefined): Promise<Check[]> {
  const refs = new Map<string, { namespace: string; name: string; gateway: string }>()
  for (const { metadata, spec } of await listObjects(connection, 'Gateway')) {
    if (!classes.includes(spec?.gatewayClassName ?? '') || (only !== undefined && metadata.namespace !== only)) continue
    for (const listener of spec?.listeners ?? [])
      for (const ref of listener.tls?.certificateRefs ?? []) {
        const namespace = ref.namespace ?? metadata.namespace ?? ''
        if ((ref.kind ?? 'Secret') === 'Secret')
          refs.set(`${namespace}/${ref.name}`, { namespace, name: ref.name, gateway: `${metadata.namespace ?? ''}/${metadata.name}` })
      }
  }
  const checks = await Promise.all(
    [...refs.values()].map(async ({ namespace, name, gateway }): Promise<Check | undefined> => {
      const secret = await read<{ data?: Readonly<Record<string, string>> }>(connection, `/api/v1/namespaces/${namespace}/secrets/${name}`)
      const end = endOf(secret?.data?.['tls.crt'])
      // A Secret that does not exist or holds no certificate is in the status of the Gateway.
      if (end === undefined) return undefined
      const days = Math.floor((end.getTime() - Date.now()) / DAY_MS)
      const subject = `Secret ${namespace}/${name} of Gateway ${gateway}`
      const fix = `renew the certificate in Secret ${namespace}/${name}`
      if (days < 0) return error('certificates', `${subject} expired on ${end.toISOString().slice(0, 10)}`, fix)
      return days < CERTIFICATE_WARNING_DAYS
        ? warning('certificates', `${subject} expires in ${days} days`, fix)
        : ok('certificates', `${subject}: ${days} days left`)
    }),
  )
  const found = checks.flatMap((check) => check ?? [])
  const bad = found.filter(({ severity }) => severity !== 'ok')
  if (found.length === 0)
    return refs.size === 0
      ? []
      : [warning('certificates', 'none can be read', 'give this user the verb get for the Secrets of listeners, to check when they expire')]
  return bad.length > 0 ? bad : [ok('certificates', `${found.length}, none expires within ${CERTIFICATE_WARNING_DAYS} days`)]
}

function endOf(base64: string | undefined): Date | undefined {
  if (base64 === undefined) return undefined
  try {
    return new Date(new X509Certificate(Buffer.from(base64, 'base64')).validTo)
  } catch {
    return undefined
  }
}

async function checkStatuses(invocation: Invocation): Promise<Check[]> {
  const { namespace } = invocation.options
  const all = (await describeCluster(invocation)).filter((row) => namespace === undefined || row.namespace === '' || row.namespace === namespace)
  const bad = all
    .filter(({ severity }) => severity === 'error' || severity === 'warning')
    .sort((a, b) => (a.severity < b.severity ? -1 : a.severity > b.severity ? 1 : 0))
  if (bad.length === 0) return [ok('statuses', `${all.length} objects, none with a problem`)]
  const rows = bad.slice(0, LISTED).map(({ severity, kind, namespace: of, name, conditions }): Check => {
    const message = `${kind} ${of === '' ? name : `${of}/${name}`}: ${conditions[0] ?? ''}`
    const code = /\[(PX\d+)\]/.exec(message)?.[1]
    return {
      severity: severity === 'error' ? 'error' : 'warning',
      check: 'statuses',
      message,
      fix: code === undefined ? 'proxyctl status lists all conditions' : `proxyctl explain ${code} describes cause and fix`,
    }
  })
  return [...rows, ...countRest('statuses', bad.length)]
}
