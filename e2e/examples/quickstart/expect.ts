import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'
import { makeGrpcClient } from '../../harness/grpc-client.ts'
import { replaceFile } from '../../harness/files.ts'
import { waitUntil } from '../../harness/wait.ts'

const localhost = { host: 'localhost' }

export default expectations({
  'about three quarters of the requests go to blue': async (run) => {
    const responses = await Promise.all(Array.from({ length: 200 }, () => run.send(8080, localhost)))
    const blue = responses.filter((response) => response.json().name === 'blue').length
    // A random result outside these bounds occurs less than once in 10^11 runs.
    expect(blue).toBeGreaterThan(105)
    expect(blue).toBeLessThan(192)
  },
  'HTTP/2 works with TLS and in cleartext': async (run) => {
    const secure = await run.send(8443, { ...localhost, protocol: 'http2', tls: run.tls('localhost') })
    const plain = await run.send(8080, { ...localhost, protocol: 'http2' })
    expect([secure.status, plain.status]).toEqual([200, 200])
  },
  'a gRPC client is served': async (run) => {
    const client = makeGrpcClient(`127.0.0.1:${run.port(8080)}`, { authority: 'grpc.localhost' })
    expect(await client.unary('hello')).toMatchObject({ message: 'hello', server: 'echo' })
    client.close()
  },
  'a host without a route gets 404': async (run) => {
    const response = await run.send(8080, { host: 'example.com' })
    expect([response.status, response.body]).toEqual([404, 'route not found'])
  },
  'an edit takes effect without a restart': async (run) => {
    const file = join(run.directory, 'manifests.yaml')
    const text = await readFile(file, 'utf8')
    await replaceFile(file, text.replace('value: /inventory', 'value: /stock'))
    await waitUntil('the edited route', async () => (await run.send(8080, { ...localhost, path: '/stock' })).headers['x-served-by'] === 'inventory')
    expect((await run.send(8080, { ...localhost, path: '/inventory' })).headers['x-served-by']).toBeUndefined()
    await replaceFile(file, text)
    await waitUntil('the original route', async () => (await run.send(8080, { ...localhost, path: '/inventory' })).headers['x-served-by'] === 'inventory')
  },
})
