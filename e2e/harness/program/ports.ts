import { once } from 'node:events'
import { createServer } from 'node:net'

// Below the ephemeral port range, so that no outgoing connection uses the port before the program binds it, and above the ports of the data plane itself
// (15000 to 15023), which listeners cannot use.
const FIRST = 15_100
const LAST = 32_000

/** Whether no socket listens on the port, on any address. */
export async function isPortFree(port: number): Promise<boolean> {
  const probe = createServer()
  try {
    probe.listen(port)
    await once(probe, 'listening')
    return true
  } catch {
    return false
  } finally {
    if (probe.listening) {
      probe.close()
      await once(probe, 'close')
    }
  }
}

/**
 * Reserves a port against other processes of this machine until this process exits, by an abstract socket named after it: test files run in parallel, and a
 * port is bound some time after it was found. Returns false if the port is already reserved.
 */
async function reserve(port: number): Promise<boolean> {
  const mark = createServer().unref()
  try {
    mark.listen(`\0proxy-e2e-port-${port}`)
    await once(mark, 'listening')
    return true
  } catch (error) {
    // Only Linux has abstract sockets.
    return (error as NodeJS.ErrnoException).code !== 'EADDRINUSE'
  }
}

/** Returns a free port and reserves it. */
export async function findFreePort(): Promise<number> {
  for (let tries = 0; tries < 1000; tries++) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST))
    // Reserve before probing: a probe would disturb a program that is about to bind a port it reserved.
    if ((await reserve(port)) && (await isPortFree(port))) return port
  }
  throw new Error(`no free port found between ${FIRST} and ${LAST}`)
}

/** Returns several free ports and reserves them. */
export async function findFreePorts(count: number): Promise<number[]> {
  const ports: number[] = []
  while (ports.length < count) ports.push(await findFreePort())
  return ports
}
