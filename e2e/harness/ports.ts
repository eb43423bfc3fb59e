import { once } from 'node:events'
import { createServer } from 'node:net'

// Below the range that the kernel takes source ports from, so that an outgoing connection cannot take one between here and its use.
const FIRST = 10_240
const LAST = 32_000
const given = new Set<number>()

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

/** A port that is free now, and that this process gets only once. */
export async function findFreePort(): Promise<number> {
  for (let tries = 0; tries < 1000; tries++) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST))
    if (given.has(port)) continue
    given.add(port)
    if (await isPortFree(port)) return port
  }
  throw new Error(`no free port found between ${FIRST} and ${LAST}`)
}

export async function findFreePorts(count: number): Promise<number[]> {
  const ports: number[] = []
  while (ports.length < count) ports.push(await findFreePort())
  return ports
}
