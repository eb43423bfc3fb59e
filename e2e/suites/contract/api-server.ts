import { readFile } from 'node:fs/promises'
import { Agent, request } from 'node:https'
import { parse } from 'yaml'

/** One entry of `details.causes` of a Status: a reason why an object was rejected. */
interface Cause {
  field: string
  message: string
}

/** A response of the API server. `object` is the stored (or, on dry run, would-be stored) object; `causes` is empty on success. */
export interface ApiResponse {
  status: number
  object: Record<string, unknown>
  causes: Cause[]
}

interface Kubeconfig {
  clusters: { cluster: { server: string; 'certificate-authority-data': string } }[]
  users: { user: { 'client-certificate-data': string; 'client-key-data': string } }[]
}

const decode = (base64: string | undefined): Buffer => Buffer.from(base64 ?? '', 'base64')

/** A keep-alive connection to the API server that KUBECONFIG names. */
export interface ApiServer {
  call(method: string, path: string, body?: unknown, contentType?: string): Promise<ApiResponse>
  close(): void
}

/** Connects with the server and client certificate of a kubeconfig file. */
export async function connect(kubeconfig: string | undefined = process.env['KUBECONFIG']): Promise<ApiServer> {
  if (!kubeconfig) throw new Error('KUBECONFIG is not set; run this through e2e/suites/contract/run, which starts an API server')
  const config = parse(await readFile(kubeconfig, 'utf8')) as Kubeconfig
  const [cluster, user] = [config.clusters[0]?.cluster, config.users[0]?.user]
  if (!cluster || !user) throw new Error(`${kubeconfig}: expected a cluster and a user`)
  const agent = new Agent({
    keepAlive: true,
    maxSockets: 8,
    ca: decode(cluster['certificate-authority-data']),
    cert: decode(user['client-certificate-data']),
    key: decode(user['client-key-data']),
  })
  const call = (method: string, path: string, body?: unknown, contentType = 'application/json'): Promise<ApiResponse> =>
    new Promise((resolve, reject) => {
      const payload = body === undefined ? undefined : JSON.stringify(body)
      const headers = payload === undefined ? {} : { 'content-type': contentType, 'content-length': Buffer.byteLength(payload) }
      const sent = request(new URL(path, cluster.server), { method, agent, headers }, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => resolve(toAnswer(response.statusCode ?? 0, Buffer.concat(chunks).toString())))
      })
      sent.on('error', (error: NodeJS.ErrnoException) => {
        // The server closed an idle connection before it sent a byte of a response: clients retry such requests (RFC 9112 §9.3.1).
        if (sent.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE')) resolve(call(method, path, body, contentType))
        else reject(error)
      })
      sent.end(payload)
    })
  return { call, close: () => agent.destroy() }
}

function toAnswer(status: number, text: string): ApiResponse {
  // The response for a path that is not served yet is plain text.
  const object = (text.startsWith('{') ? JSON.parse(text) : { message: text }) as Record<string, unknown>
  if (status < 400) return { status, object, causes: [] }
  const { message = '', details } = object as { message?: string; details?: { causes?: Partial<Cause>[] } }
  const causes = (details?.causes ?? []).map((cause) => ({ field: cause.field ?? '', message: cause.message ?? '' }))
  // Unknown fields are a 400 without causes: `strict decoding error: unknown field "spec.x"`.
  return { status, object, causes: causes.length > 0 ? causes : [{ field: '', message }] }
}

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

/** Installs or replaces CustomResourceDefinitions and waits until objects can be created. */
export async function install(server: ApiServer, crds: readonly { metadata: { name: string } }[]): Promise<void> {
  for (const crd of crds) {
    const path = `${CRDS}/${crd.metadata.name}?fieldManager=contract&force=true`
    const response = await server.call('PATCH', path, crd, 'application/apply-patch+yaml')
    if (response.status >= 400) throw new Error(`${crd.metadata.name}: ${response.causes.map(({ field, message }) => `${field}: ${message}`).join('; ')}`)
  }
  const deadline = Date.now() + 180_000
  for (const crd of crds) {
    while (!(await isEstablished(server, crd.metadata.name))) {
      if (Date.now() > deadline) throw new Error(`${crd.metadata.name} was not established within 180 s`)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}

async function isEstablished(server: ApiServer, name: string): Promise<boolean> {
  const { object } = await server.call('GET', `${CRDS}/${name}`)
  const status = object['status'] as { conditions?: { type: string; status: string }[] } | undefined
  const spec = object['spec'] as { names: { plural: string }; group: string; scope: string; versions: { name: string; served: boolean }[] } | undefined
  if (!spec || !status?.conditions?.some(({ type, status: value }) => type === 'Established' && value === 'True')) return false
  const root = `/apis/${spec.group}/${spec.versions.find(({ served }) => served)?.name}`
  const list = await server.call('GET', `${root}${spec.scope === 'Cluster' ? '' : '/namespaces/default'}/${spec.names.plural}`)
  return list.status === 200
}
