import { connect } from 'node:net'
import { expect } from '@jest/globals'
import { expectations, type ExampleRun } from '../../harness/example/expectations.ts'

/** Sends a request through a load balancer that names `client` by PROXY protocol; returns all bytes of the response. */
function sendFrom(run: ExampleRun, client: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const request = `PROXY TCP4 ${client} 10.0.0.1 40000 80\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`
    const socket = connect(run.port(8080), '127.0.0.1', () => void socket.write(request))
    socket.on('data', (chunk) => (text += chunk.toString()))
    socket.on('error', reject)
    socket.on('close', () => resolve(text))
  })
}

export default expectations({
  'a client of an allowed network is admitted': async (run) => {
    expect(await sendFrom(run, '198.51.100.7')).toContain('200 OK')
  },
  'a client that is denied within an allowed network does not reach the upstream': async (run) => {
    const before = run.upstream('app').requests.length
    expect(await sendFrom(run, '198.51.100.9')).toContain('403 Forbidden')
    expect(run.upstream('app').requests.length).toBe(before)
  },
  'a client of another network does not reach the upstream': async (run) => {
    const before = run.upstream('app').requests.length
    expect(await sendFrom(run, '203.0.113.7')).toContain('403 Forbidden')
    expect(run.upstream('app').requests.length).toBe(before)
  },
})
