import type { Run } from '../run/run.ts'
import { readTool } from './lists.ts'

/** Whether the pins of the backend allow calls of a tool. Reads the list of its server if its state is not known. Rejects as reading the list does. */
export async function isPinAllowed(run: Run, targetName: string, name: string): Promise<boolean> {
  const { pins, targetOf } = run.config
  const target = targetOf.get(targetName)
  if (pins === undefined || target === undefined || target.openapi !== undefined) return true
  const known = pins.isOffered(targetName, name)
  if (known !== undefined) return known
  const tool = await readTool(run, target, name)
  // The states of very many tools are not kept.
  return pins.isOffered(targetName, name) ?? tool !== undefined
}
