/**
 * Base class of all values of this package, including errors and maps. Any other object is data of the host. The check is
 * much cheaper than an inspection of prototypes.
 */
// oxlint-disable-next-line typescript/no-extraneous-class -- it exists for instanceof
export abstract class Special {}
