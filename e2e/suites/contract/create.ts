import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'yaml'
import { GROUP, VERSION } from '#api/names.ts'
import { kinds } from '#api/v1alpha1/kinds.ts'
import { connect, install, type ApiResponse, type ApiServer } from './api-server.ts'
import type { Manifest } from './rows/row.ts'

const CRDS = join(import.meta.dirname, '../../../charts/proxy-crds/templates')

/** Connects to the API server and installs the generated CRDs. */
export async function connectWithCrds(): Promise<ApiServer> {
  const server = await connect()
  const names = await readdir(CRDS)
  await install(server, await Promise.all(names.map(async (name) => parse(await readFile(join(CRDS, name), 'utf8')) as { metadata: { name: string } })))
  return server
}

/** Reads the CRDs of the Gateway API from its Go module. */
export async function readGatewayApiCrds(): Promise<{ metadata: { name: string } }[]> {
  const module = process.env['GATEWAY_API']
  if (!module) throw new Error('GATEWAY_API is not set; run this through e2e/suites/contract/run, which downloads the module')
  const folder = join(module, 'config/crd/experimental')
  const files = (await readdir(folder)).filter((file) => file.startsWith('gateway.networking.k8s.io_') && !file.includes('_vap_'))
  return Promise.all(files.map(async (file) => parse(await readFile(join(folder, file), 'utf8')) as { metadata: { name: string } }))
}

/** Creates an object with strict field validation, as a dry run. */
export function create(server: ApiServer, object: Manifest): Promise<ApiResponse> {
  const plural = kinds.find(({ kind }) => kind === object.kind)?.plural
  return server.call('POST', `/apis/${GROUP}/${VERSION}/namespaces/default/${plural}?dryRun=All&fieldValidation=Strict`, object)
}
