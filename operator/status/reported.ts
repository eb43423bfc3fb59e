import type { ObjectStatus, Translation } from '../model/translation.ts'
import type { DataplaneReport } from '../serve/nack.ts'
import { createHeldTools } from './held-tools.ts'
import { createRefusals } from './refused-plugins.ts'

/** Makes a function that adds to the statuses of a translation what data planes of each Gateway (`<namespace>/<name>`) report. */
export function createReported(): (
  translation: Pick<Translation, 'statuses' | 'gateways'>,
  find: (gateway: string) => DataplaneReport | undefined,
) => readonly ObjectStatus[] {
  const addRefusals = createRefusals()
  const addHeldTools = createHeldTools()
  return ({ statuses, gateways }, find) =>
    addHeldTools(
      addRefusals(statuses, (gateway) => find(gateway)?.plugins ?? []),
      gateways,
      (gateway) => find(gateway)?.heldTools ?? [],
    )
}
