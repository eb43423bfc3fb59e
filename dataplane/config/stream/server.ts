import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { checkServerIdentity, type PeerCertificate } from 'node:tls'
import { Client, credentials, type ChannelCredentials } from '@grpc/grpc-js'
import { XDS_PORT } from '#api/names.ts'
import { withoutBrackets } from '../../http/message.ts'

const MAX_MESSAGE_BYTES = 200 * 1024 * 1024

/** Address of the config server. */
export interface ServerAddress {
  readonly isTls: boolean
  /** Without brackets. */
  readonly host: string
  /** `host:port`. */
  readonly authority: string
}

/**
 * Parses XDS_ADDRESS: `http://host:port` or `https://host:port`.
 * @throws Error that names the setting and its value
 */
export function parseServerAddress(address: string): ServerAddress {
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:') || url.hostname === '' || url.pathname !== '/')
    throw new Error(`XDS_ADDRESS: ${JSON.stringify(address)} is not usable; write http://host:port or https://host:port`)
  // The URL parser drops 80 and 443 even where they are written.
  const port = /:(\d+)\/?$/.exec(address)?.[1] ?? String(XDS_PORT)
  return { isTls: url.protocol === 'https:', host: withoutBrackets(url.hostname), authority: `${url.hostname}:${port}` }
}

/** Creates a gRPC client with a connection of its own. `rootCaFile` is read anew for each client, because it is rotated. */
export async function createClient(server: ServerAddress, rootCaFile: string | undefined): Promise<Client> {
  return new Client(server.authority, await loadCredentials(server, rootCaFile), {
    'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
    'grpc.max_send_message_length': -1,
    'grpc.keepalive_time_ms': 30_000,
    'grpc.keepalive_timeout_ms': 10_000,
    // This client does its own backoff: each attempt opens a new connection instead of waiting for one that gRPC shares.
    'grpc.use_local_subchannel_pool': 1,
    'grpc.enable_retries': 0,
    // The stream stays inside the cluster; HTTP_PROXY is for traffic that leaves it.
    'grpc.enable_http_proxy': 0,
    'grpc.service_config_disable_resolution': 1,
    // RFC 6066 §3: SNI is never an IP address, which gRPC would send. The certificate is checked against the address.
    ...(isIP(server.host) > 0 ? { 'grpc.ssl_target_name_override': 'config-server' } : {}),
  })
}

async function loadCredentials({ isTls, host }: ServerAddress, rootCaFile: string | undefined): Promise<ChannelCredentials> {
  if (!isTls) return credentials.createInsecure()
  const rootCa = rootCaFile === undefined ? null : await readFile(rootCaFile)
  return credentials.createSsl(rootCa, null, null, { checkServerIdentity: (_, certificate) => checkOperatorIdentity(host, certificate) })
}

/**
 * Checks the operator's certificate against its host name. The certificate may omit the cluster domain:
 * `proxy.proxy-system.svc` is the same Service as `proxy.proxy-system.svc.cluster.local`.
 */
export function checkOperatorIdentity(host: string, certificate: PeerCertificate): Error | undefined {
  const [service] = /^[^.]+\.[^.]+\.svc(?=\.)/.exec(host) ?? []
  const mismatch = checkServerIdentity(host, certificate)
  return mismatch === undefined || (service !== undefined && checkServerIdentity(service, certificate) === undefined) ? undefined : mismatch
}
