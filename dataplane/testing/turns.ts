import { setImmediate as nextTurn } from 'node:timers/promises'

/**
 * Lets what is under way between sockets of this process arrive. Each turn of the event loop looks at every socket, so that, other than
 * after a pause of some milliseconds, nothing is left to come on a machine that stood still meanwhile.
 */
export async function letArrive(turns = 50): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await nextTurn()
}
