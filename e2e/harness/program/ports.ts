import { once } from 'node:events'
import { createServer } from 'node:net'

// Below the range that the kernel takes source ports from, so that an outgoing connection cannot take one between here and its use.
const FIRST = 10_240
const LAST = 32_000

/** Whether nothing listens on the port, on any address. */
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
 * Marks the port as given, for all processes of this machine until this one ends, by an abstract socket of its name: test files run beside
 * each other, and a port is bound only some time after it was found. False: it is somebody else's, or was given before.
 */
async function reserve(port: number): Promise<boolean> {
  const mark = createServer().unref()
  try {
    mark.listen(`\0proxy-e2e-port-${port}`)
    await once(mark, 'listening')
    return true
  } catch (error) {
    // Only Linux has such sockets.
    return (error as NodeJS.ErrnoException).code !== 'EADDRINUSE'
  }
}

/** A port that is free now, and that nobody else gets from here. */
export async function findFreePort(): Promise<number> {
  for (let tries = 0; tries < 1000; tries++) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST))
    // In this order: a probe is in the way of the program that is about to use a port of its own.
    if ((await reserve(port)) && (await isPortFree(port))) return port
  }
  throw new Error(`no free port found between ${FIRST} and ${LAST}`)
}

export async function findFreePorts(count: number): Promise<number[]> {
  const ports: number[] = []
  while (ports.length < count) ports.push(await findFreePort())
  return ports
}
