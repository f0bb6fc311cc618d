def issued(instruction):
    return 1
