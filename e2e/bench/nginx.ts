import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeCertificate } from '../harness/certificates.ts'
import { startProgram } from '../harness/program/program.ts'
import { waitUntil } from '../harness/wait.ts'
import type { ProxySpec, RunningProxy } from './spec.ts'

/** Body of the plain response. */
const PLAIN_BODY = 'x'.repeat(92)
/** Path of a response of 1 MiB. */
export const LARGE_PATH = '/large'
const LARGE_BYTES = 1024 * 1024

/** A short chat completion. */
const COMPLETION = JSON.stringify({
  id: 'chatcmpl-bench',
  object: 'chat.completion',
  created: 1_760_000_000,
  model: 'gpt-4o',
  choices: [{ index: 0, message: { role: 'assistant', content: 'The weather in Paris is fine today. '.repeat(8), refusal: null }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 250, completion_tokens: 64, total_tokens: 314, prompt_tokens_details: { cached_tokens: 0 } },
})

/** Files of the certificate that every proxy under test has. */
export const CERTIFICATE_FILE = 'bench.crt'
export const KEY_FILE = 'bench.key'
const certificate = makeCertificate({ name: 'localhost' })

/** Writes the certificate into a directory. */
export function writeCertificate(directory: string): void {
  writeFileSync(join(directory, CERTIFICATE_FILE), certificate.certificate)
  writeFileSync(join(directory, KEY_FILE), certificate.privateKey, { mode: 0o600 })
}

/** Starts the upstream of every case: a fixed response of 92 bytes, a file of 1 MiB, and a chat completion. */
export function startUpstream(directory: string, port: number, cpu: number): Promise<RunningProxy> {
  const folder = join(directory, 'upstream')
  mkdirSync(join(folder, 'files'), { recursive: true })
  writeFileSync(join(folder, 'files', 'large'), Buffer.alloc(LARGE_BYTES, 'x'))
  const server = `
    server {
      listen 127.0.0.1:${port} backlog=4096;
      client_max_body_size 0;
      location / { return 200 "${PLAIN_BODY}"; }
      location /v1/chat/completions { default_type application/json; return 200 '${COMPLETION}'; }
      location ${LARGE_PATH} { root ${folder}/files; }
    }`
  return start(folder, server, port, cpu)
}

/** Starts nginx as the proxy: the same routes, one worker, persistent upstream connections. */
export function startNginx(directory: string, spec: ProxySpec, cpu: number): Promise<RunningProxy> {
  const folder = join(directory, `nginx-${spec.port}`)
  mkdirSync(folder, { recursive: true })
  writeCertificate(folder)
  const pass = `proxy_pass http://upstream; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;`
  const locations = Array.from({ length: spec.routes }, (_, index) => `location /route-${index}/ { ${pass} }`)
  const server = `
    upstream upstream { server 127.0.0.1:${spec.upstreamPort}; keepalive 512; keepalive_requests 1000000000; }
    proxy_buffering ${spec.isStreaming === true ? 'off' : 'on'};
    proxy_max_temp_file_size 0;
    server {
      listen 127.0.0.1:${spec.port} backlog=4096;
      listen 127.0.0.1:${spec.http2Port} http2 backlog=4096;
      ${spec.tlsPort === undefined ? '' : `listen 127.0.0.1:${spec.tlsPort} ssl http2 backlog=4096;`}
      ssl_certificate ${folder}/${CERTIFICATE_FILE}; ssl_certificate_key ${folder}/${KEY_FILE};
      ${locations.join('\n      ')}
      location / { ${pass} }
    }`
  return start(folder, server, spec.port, cpu)
}

async function start(folder: string, server: string, port: number, cpu: number): Promise<RunningProxy> {
  const file = join(folder, 'nginx.conf')
  const user = process.getuid?.() === 0 ? 'user root;' : ''
  writeFileSync(
    file,
    `${user} daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log ${folder}/error.log;
events { worker_connections 8192; }
http {
  access_log off; default_type text/plain; keepalive_requests 1000000000; keepalive_timeout 600s; sendfile on; http2_max_concurrent_streams 256;
  client_body_temp_path ${folder}/t1; proxy_temp_path ${folder}/t2; fastcgi_temp_path ${folder}/t3; uwsgi_temp_path ${folder}/t4; scgi_temp_path ${folder}/t5;
  ${server}
}
`,
  )
  const program = startProgram({ name: 'nginx', command: 'taskset', args: ['-c', String(cpu), 'nginx', '-p', folder, '-c', file] })
  await waitUntil(`nginx on port ${port}`, async () => {
    if (program.hasExited()) throw new Error('nginx exited')
    return (await fetch(`http://127.0.0.1:${port}/`)).status < 600
  })
  return { pid: program.pid, stop: async () => void (await program.stop()) }
}
