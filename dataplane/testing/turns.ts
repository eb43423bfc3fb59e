import { setImmediate as nextTurn } from 'node:timers/promises'

/**
 * Waits until data in transit between sockets of this process has arrived. Each turn of the event loop polls every socket, so that
 * this is reliable on a slow machine too, unlike a pause of some milliseconds.
 */
export async function letArrive(turns = 50): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await nextTurn()
}
