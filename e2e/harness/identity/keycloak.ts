import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { findFreePort } from '../program/ports.ts'
import { startProgram, tailOf } from '../program/program.ts'
import { isTrueWithin } from '../wait.ts'

const VERSION = '26.4.2'
const ARTIFACT = `org.keycloak:keycloak-quarkus-dist:${VERSION}:zip`
const AGAIN = fileURLToPath(new URL('../../../.ci/again', import.meta.url))
const TOOLS = fileURLToPath(new URL('../../../.tools/keycloak', import.meta.url))
/** Credentials of a server that listens on loopback while a test runs. */
const ADMIN = { username: 'admin', password: 'admin' }
const run = promisify(execFile)

/** A Keycloak for one test; its data is removed when it stops. */
export interface Keycloak {
  readonly port: number
  /** `http://127.0.0.1:<port>`; realms are at `/realms/<name>`. */
  readonly url: string
  /** Calls the admin API under `/admin`; `body` is sent as JSON. Rejects if the response is not 2xx. */
  admin(method: string, path: string, body?: object): Promise<Response>
  stop(): Promise<void>
}

/**
 * Starts Keycloak in development mode with an in-memory database, from the distribution on Maven Central. The first start downloads it to `.tools` and
 * builds it, which takes one to two minutes; later starts take about 20 s. Needs Java 17 and Maven.
 */
export async function startKeycloak(timeoutMs = 420_000): Promise<Keycloak> {
  const home = await install()
  const port = await findFreePort()
  const url = `http://127.0.0.1:${port}`
  const program = startProgram({
    name: 'keycloak',
    command: join(home, 'bin', 'kc.sh'),
    args: ['start-dev', '--db=dev-mem', '--http-host=127.0.0.1', `--http-port=${port}`],
    env: { KC_BOOTSTRAP_ADMIN_USERNAME: ADMIN.username, KC_BOOTSTRAP_ADMIN_PASSWORD: ADMIN.password, JAVA_OPTS_APPEND: '-Xmx400m' },
  })
  const stop = async (): Promise<void> => void (await program.stop())
  const isUp = async (): Promise<boolean> => program.hasExited() || (await fetch(`${url}/realms/master/.well-known/openid-configuration`)).ok
  if (!(await isTrueWithin(timeoutMs, isUp)) || program.hasExited()) {
    await stop()
    throw new Error(`Keycloak did not start\n${tailOf(program.lines)}`)
  }
  return { port, url, stop, admin: (method, path, body) => callAdmin(url, method, path, body) }
}

async function install(): Promise<string> {
  const home = join(TOOLS, `keycloak-${VERSION}`)
  if (existsSync(join(home, 'bin', 'kc.sh'))) return home
  await mkdir(TOOLS, { recursive: true })
  const archive = join(TOOLS, `keycloak-quarkus-dist-${VERSION}.zip`)
  if (!existsSync(archive)) {
    const goal = 'org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy'
    await run(AGAIN, ['mvn', '-q', '-B', goal, `-Dartifact=${ARTIFACT}`, `-DoutputDirectory=${TOOLS}`], { timeout: 600_000 })
  }
  await run('unzip', ['-q', '-o', archive], { cwd: TOOLS })
  return home
}

async function callAdmin(url: string, method: string, path: string, body: object | undefined): Promise<Response> {
  const token = await fetchKeycloakToken(`${url}/realms/master`, { grant_type: 'password', client_id: 'admin-cli', ...ADMIN })
  const response = await fetch(`${url}/admin${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
  return response
}

/** Fetches an access token from a realm (`<url>/realms/<name>`) with the grant of the form. */
export async function fetchKeycloakToken(realm: string, form: Record<string, string>): Promise<string> {
  const response = await fetch(`${realm}/protocol/openid-connect/token`, { method: 'POST', body: new URLSearchParams(form) })
  if (!response.ok) throw new Error(`${realm} returned no token: ${response.status} ${await response.text()}`)
  return ((await response.json()) as { access_token: string }).access_token
}
