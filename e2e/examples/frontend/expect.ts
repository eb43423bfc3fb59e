import { connect } from 'node:net'
import { expect } from '@jest/globals'
import { expectations, type ExampleRun } from '../../harness/example/expectations.ts'

/** Opens a connection, sends these bytes and returns the response. */
function talk(run: ExampleRun, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    const socket = connect(run.port(8080), '127.0.0.1', () => void socket.write(bytes))
    socket.on('data', (chunk) => (text += chunk.toString()))
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(text))
  })
}
const request = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'

export default expectations({
  'the client address of the PROXY header is checked and logged': async (run) => {
    const before = run.upstream('app').requests.length
    expect(await talk(run, `PROXY TCP4 203.0.113.7 10.0.0.1 40000 80\r\n${request}`)).toBe('')
    expect(run.upstream('app').requests.length).toBe(before)
    expect(await talk(run, `PROXY TCP4 198.51.100.7 10.0.0.1 40000 80\r\n${request}`)).toContain('200 OK')
    await run.dataplane.program.waitForLine(/src\.addr=198\.51\.100\.7:40000/)
  },
  'an invalid PROXY header closes the connection': async (run) => expect(await talk(run, `PROXY TCP4 nonsense\r\n${request}`)).toBe(''),
})
